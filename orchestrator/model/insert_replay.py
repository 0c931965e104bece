"""The plan that writes rows of a quarantine into the target of the INSERT which has set them aside."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import Plan
from orchestrator.model.set_aside import InsertName, SetAside
from spark_runner.sql.compiler.steps import PLAN_VERSION
from spark_runner.sql.grammar.references import names_in, references
from spark_runner.sql.grammar.statements import CatalogAction
from spark_runner.sql.locations import comparable, overlap
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource

_DECIDING = {"set", "reset", "function"}  # what casts and expectations mean
_INSTEAD = "run the whole job again instead"

Step = Mapping[str, Any]


def insert_plan(
    plan: Plan, rows: SetAside, run: Mapping[str, str], text: str, before: Callable[[], Plan]
) -> Plan:
    """The plan with one INSERT alone, whose rows are those that `run` has set aside.

    `text` is the script of the plan, `before` gives the plan of the script that set the rows aside. Raises
    DefinitionError if the script has no such INSERT, or if another statement depends on its rows.
    """
    name = rows.insert
    if name is None:
        raise DefinitionError(f"'{rows.table}' is no INSERT")
    at = _index(plan, rows, name, before)
    _check_later(plan, at, ScriptSource("", text))
    rejects = (plan.get("bad_rows") or {}).get("table")
    facts = {"place": rows.place, "rows": rows.quarantined, "source": rows.table, **run}
    insert = {"overwrite": False, "replayed": {**facts, "pinned": rejects is not None}}
    steps = list[Step]()
    for index, step in enumerate(plan["steps"]):
        is_target = index < at and str(step.get("name", "")).lower() == name.target.lower()
        if step["kind"] == "table" and (is_target or step["name"] == rejects):
            steps.append({**_adding(step), "read": False})
        elif index == at:
            steps.append({key: value for key, value in _adding(step).items() if key != "reads"} | insert)
        elif index < at and step["kind"] in _DECIDING:
            steps.append(step)
    return {**plan, "version": PLAN_VERSION, "needs_own_jvm": True, "steps": steps}


def _adding(step: Step) -> dict[str, Any]:
    """The step without a mode that keeps it from adding rows."""
    if "mode" not in step.get("options", ()):
        return dict(step)
    return {**step, "options": {**step["options"], "mode": "append"}}


def _index(plan: Plan, rows: SetAside, name: InsertName, before: Callable[[], Plan]) -> int:
    """The index of the step that does what the INSERT did: into its target, and the same of several."""
    found = _inserts(plan, name.target)
    what = f"{rows.quarantined:,} rows were set aside by {rows.described}"
    if not found:
        raise DefinitionError(f"{what}, and the script has no INSERT into '{name.target}' any more")
    if len(found) == 1:
        (steps,) = found.values()
    else:
        lines = list(_inserts(before(), name.target))
        if name.line not in lines or len(lines) != len(found):
            raise DefinitionError(
                f"{what}; which INSERT of this script that is now is unknown: the script of the job has"
                f" INSERTs into the table in the lines {_listed(lines)}, and this script in {_listed(found)}"
            )
        steps = list(found.values())[lines.index(name.line)]
    first = plan["steps"][steps[0]]
    if any(plan["steps"][each].get("options") != first.get("options") for each in steps):
        raise DefinitionError(
            f"{what}; line {first['line']} of the script has several with different options; {_INSTEAD}"
        )
    return steps[0]


def _listed(lines: Iterable[int]) -> str:
    return ", ".join(map(str, lines)) or "none"


def _inserts(plan: Plan, target: str) -> dict[int, list[int]]:
    """The indices of the INSERTs into a table, by line."""
    found = dict[int, list[int]]()
    for index, step in enumerate(plan["steps"]):
        if step["kind"] == "insert" and step["target"].lower() == target.lower():
            found.setdefault(step["line"], []).append(index)
    return found


def _check_later(plan: Plan, at: int, source: ScriptSource) -> None:
    """Raise DefinitionError for a later statement whose result the rows would have changed."""
    steps = plan["steps"]
    target = steps[at]["target"]
    places = dict(_places(steps))
    own = places.get(target.lower(), "")

    def is_there(name: str) -> bool:
        place = places.get(name.lower(), "")
        return name.lower() == target.lower() or bool(own and place and overlap(own, place))

    affected = {
        str(step["name"]).lower() for step in steps if step["kind"] == "table" and is_there(step["name"])
    }
    for index, step in enumerate(steps):
        if step["kind"] == "view" and _reads(_passage(plan, step["query"], source), affected):
            affected.add(step["name"].lower())
        if index <= at or not _writes(step):
            continue
        what = f"the statement of line {step['line']}"
        if step.get("overwrite") and is_there(step["target"]):
            raise DefinitionError(
                f"a replay would add rows to table '{target}', whose rows {what} replaces; {_INSTEAD}"
            )
        text = step["query"] if step["kind"] == "insert" else step["statement"]
        if _reads(_passage(plan, text, source), affected):
            raise DefinitionError(
                f"a replay would add rows to table '{target}', which {what} reads; {_INSTEAD}"
            )


def _writes(step: Step) -> bool:
    return step["kind"] == "insert" or (step["kind"] == "catalog" and CatalogAction(step["action"]).writes)


def _places(steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    for step in steps:
        if step["kind"] == "table" and step["location"]:
            yield step["name"].lower(), comparable(step["location"])


def _passage(plan: Plan, pieces: Sequence[Sequence[int]], source: ScriptSource) -> Passage:
    return Passage.from_json(source, pieces, plan["values"])


def _reads(passage: Passage, names: set[str]) -> bool:
    """Whether a statement may read one of the tables or views; one that computes names may read all."""
    words = names_in(passage.tokens)
    if words is None:
        return True
    # Of a query, the position of a name shows whether it is that of a table; MERGE has other positions.
    is_query = passage.tokens[0].is_word("SELECT", "WITH", "FROM", "TABLE", "VALUES")
    return bool(names & (set(references(passage.tokens)) if is_query else words))
