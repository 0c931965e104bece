"""The job that replays the rows which another job has set aside from one of its tables."""

import hashlib
import re
from collections.abc import Callable, Sequence

from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError, StateConflict
from orchestrator.model.insert_replay import insert_plan
from orchestrator.model.plan import Plan
from orchestrator.model.schedule import FIRE_TIME, Schedule
from orchestrator.model.set_aside import SetAside, named
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.steps import PLAN_VERSION

REPLAY_OF = "replay-of"  # the label with the id of the first job
_ID = re.compile(r"[A-Za-z0-9._-]{1,120}")  # the rest of 128 characters is for a number


def chosen(places: Sequence[SetAside], table: str | None, job_id: str) -> SetAside:
    """The rows to replay, of the named table or INSERT or of the only one.

    Raises StateConflict for a job without such rows, DefinitionError for a name that has none, and for
    rows whose place is unknown.
    """
    if not places:
        raise StateConflict(f"job {job_id!r} has no rows in quarantine")
    names = [each.table for each in places]
    if table is None and len(places) > 1:
        # The bad rows of two tables that a query joins have matches among all rows of the other table.
        raise DefinitionError(
            "name one of the tables with rows in quarantine by --table: "
            + ", ".join(f"'{name}'" for name in names)
        )
    found = places[0] if table is None else named(places, table)
    if found is None:
        raise DefinitionError(
            f"no rows of table '{table}' are in quarantine{did_you_mean(table or '', names)}"
        )
    if not found.place:
        raise DefinitionError(f"the place of the rows of {found.described} is unknown")
    return found


def replay_definition(first: Definition, job_id: str, created: str, script: str = "") -> Definition:
    """The definition of the replay, with another text of the script if one is given.

    `created` is when the first job was submitted: times in the script are those of the first job.
    """
    if not first.script:
        raise DefinitionError(f"job {job_id!r} runs no SQL script, so that it has no rows to replay")
    times = {FIRE_TIME: first.labels.get(FIRE_TIME) or created}
    document = first.model_dump(exclude_defaults=True) | {
        "labels": {**first.labels, **times, REPLAY_OF: job_id},
        "schedule": Schedule().model_dump(exclude_defaults=True),
    }
    if document.pop("checkpoint", None) is not None:
        document.pop("concurrency", None)  # the number of jobs that share a checkpoint
    if script:
        document["script"] = script
    return build_definition(document, f"the definition of job {job_id}")


def replay_plan(
    plan: Plan,
    rows: SetAside,
    *,
    text: str,
    run_key: str,
    attempt: int | None,
    before: Callable[[], Plan],
) -> Plan:
    """The plan of a script for the rows alone; raises DefinitionError.

    Rows of a table are read in its place; those of an INSERT are written into its target. `text` is the
    script, `before` gives the plan of the script that set the rows aside. The attempt is None for a job that
    reads streams: its attempts add to each other.
    """
    run = {"run": run_key} if attempt is None else {"run": run_key, "attempt": str(attempt)}
    plan = _in_mode_batch(plan)
    if rows.insert is not None:
        return insert_plan(plan, rows, run, text, before)
    name = rows.table.lower()
    declared = [step for step in plan["steps"] if str(step.get("name", "")).lower() == name]
    declaring = [step for step in declared if step["kind"] in {"table", "view"}]
    if len(declaring) != 1 or declaring[0]["kind"] != "table":
        raise DefinitionError(f"the script must declare the table '{rows.table}' of the rows once")
    if declaring[0].get("written"):
        raise DefinitionError(f"the script writes to the table '{rows.table}' of the rows")
    facts = {"table": declaring[0]["name"], "place": rows.place, "rows": rows.quarantined}
    replay = {**facts, "source": rows.table, **run}
    return {**plan, "version": PLAN_VERSION, "needs_own_jvm": True, "replay": replay}


def _in_mode_batch(plan: Plan) -> Plan:
    """The plan without streams: the rows in a quarantine have an end."""
    parts = {key: value for key, value in plan.items() if key not in {"mode", "trigger_ms", "batch_tuning"}}
    steps = [{key: value for key, value in step.items() if key != "stream"} for step in plan["steps"]]
    return {**parts, "steps": steps}


def replay_id(job_id: str, rows: SetAside, number: int = 1) -> str:
    """The id of the replay of these rows: a second replay under the same id is refused."""
    insert = rows.insert
    own = f"{job_id}.replay.{insert.target}-line-{insert.line}" if insert else f"{job_id}.replay-{rows.table}"
    if not _ID.fullmatch(own):
        own = f"{job_id[:80]}.replay-{hashlib.sha256(own.encode()).hexdigest()[:16]}"
    return own if number == 1 else f"{own}.{number}"
