"""`orchestrator job quarantine ID --replay`: enqueues a job that runs the script for these rows."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from orchestrator.cli.connection.lookup import cluster_connections
from orchestrator.cli.documents import print_json
from orchestrator.cli.folding import say
from orchestrator.cli.follow import wait_for_end
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import exit_as
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError, StateConflict
from orchestrator.model.job_view import JobView
from orchestrator.model.plan import Plan, compile_program
from orchestrator.model.program_files import read_program
from orchestrator.model.row_replay import chosen, replay_definition, replay_id, replay_plan
from orchestrator.model.set_aside import SetAside, set_aside_in
from queues import IdTaken
from spark_runner.protocol.attempt import AttemptState
from spark_runner.sql.compiler.connections import FindConnection

if TYPE_CHECKING:
    from orchestrator.admin.views import JobDetail
    from orchestrator.client.client import Client


def replay_rows(
    client: "Client",
    detail: "JobDetail",
    *,
    table: str | None,
    script: str | None,
    again: bool,
    wait: bool,
    output: OutputFormat,
    quiet: bool,
) -> None:
    """Enqueue the job and print its id; raises StateConflict for rows that have been replayed."""
    rows, definition, plan = _prepared(detail, table, script)
    job = _enqueued(client, detail.job.id, rows, definition, plan, again=again)
    if not quiet:
        words = f"{rows.quarantined:,} rows of {rows.described} are replayed by job {job.id}"
        say(words)
    if output is OutputFormat.TABLE:
        typer.echo(job.id)
    if wait:
        job = wait_for_end(client, job.id, quiet=quiet)
    if output is not OutputFormat.TABLE:
        print_json(job.model_dump(mode="json"), output)
    if wait:
        exit_as(job, quiet=quiet)


def _prepared(
    detail: "JobDetail", table: str | None, script: str | None
) -> tuple[SetAside, Definition, Plan]:
    """The rows, and the job that replays them."""
    job_id, last = detail.job.id, detail.attempts[-1] if detail.attempts else {}
    if last.get("state") != AttemptState.SUCCEEDED:
        raise StateConflict(
            f"job {job_id!r} has not succeeded, so that its good rows may be missing, too; mend it, and run"
            " the whole job again"
        )
    rows = chosen(set_aside_in(last), table, job_id)
    first = build_definition(detail.definition, f"the definition of job {job_id}")
    text = read_program(Path(script)) if script else ""
    if script and not text.strip():
        raise DefinitionError(f"{script}: is empty")
    definition = replay_definition(first, job_id, detail.job.created, text)
    number = last.get("attempt")
    if not isinstance(number, int):
        raise DefinitionError(f"the last attempt of job {job_id!r} is damaged: it has no number")
    with cluster_connections() as find:
        plan = replay_plan(
            _plan(definition, find),
            rows,
            text=definition.script,
            run_key=str(last.get("run_key")),
            attempt=None if detail.job.mode else number,
            before=lambda: _plan(first, find),
        )
    return rows, definition, plan


def _plan(definition: Definition, find: FindConnection) -> Plan:
    # The checkpoint of the first job is none of the replay, whose rows have an end.
    compiled = compile_program(definition.model_copy(update={"checkpoint": None}), find)
    if compiled is None:
        raise DefinitionError(f"job {definition.name!r} runs no SQL script")
    return compiled


def _enqueued(
    client: "Client", job_id: str, rows: SetAside, definition: Definition, plan: Plan, *, again: bool
) -> JobView:
    number = 0
    while True:
        number += 1
        own = replay_id(job_id, rows, number)
        try:
            return client.enqueue(definition, plan, job_id=own)
        except IdTaken as error:
            if not again:
                raise StateConflict(
                    f"job {own!r} has replayed the rows of {rows.described}; with --again they are"
                    " replayed once more, and are in the target twice where the first replay has added them"
                ) from error
