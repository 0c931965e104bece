"""The plan that writes rows of a quarantine into the target of the INSERT that has set them aside."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.model.definition import Definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import Plan
from orchestrator.model.set_aside import InsertName, SetAside
from spark_runner.sql.compiler.steps import PLAN_VERSION
from spark_runner.sql.grammar.references import names_in, references
from spark_runner.sql.grammar.statements import CatalogAction
from spark_runner.sql.locations import comparable, overlap
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource

_KEPT = {"set", "reset", "function"}  # they decide what casts and expectations mean
_OF_STREAMS = {"mode", "trigger_ms"}  # the rows in a quarantine have an end
_INSTEAD = "run the whole job again instead"

Step = Mapping[str, Any]


def insert_plan(plan: Plan, definition: Definition, rows: SetAside, facts: Mapping[str, Any]) -> Plan:
    """The plan of a script with one INSERT alone, which writes the rows that `facts` describe.

    Raises DefinitionError where the script has no such INSERT, or a later statement depends on its rows.
    """
    name = rows.insert
    if name is None:
        raise DefinitionError(f"'{rows.table}' is no INSERT")
    at = _found(plan, definition, name, rows)
    steps = plan["steps"]
    _check_later(steps, at, plan["values"], ScriptSource("", definition.script))
    rejects = (plan.get("bad_rows") or {}).get("table")
    kept = [
        made
        for index, step in enumerate(steps)
        if (made := _kept(step, name, rejects, is_insert=index == at, is_before=index < at)) is not None
    ]
    own = {"kind": "insert", "replayed": {**facts, "pinned": rejects is not None}}
    kept = [{**step, **own} if step["kind"] == "insert" else step for step in kept]
    parts = {key: value for key, value in plan.items() if key not in _OF_STREAMS}
    return {**parts, "version": PLAN_VERSION, "needs_own_jvm": True, "steps": kept}


def position_of(plan: Plan, name: InsertName) -> tuple[int, int]:
    """Which of the INSERTs into its target the named one is, from 0, and how many there are."""
    lines = [steps[0]["line"] for steps in _inserts_into(plan, name.target)]
    return (lines.index(name.line) if name.line in lines else -1), len(lines)


def _kept(
    step: Step, name: InsertName, rejects: str | None, *, is_insert: bool, is_before: bool
) -> dict[str, Any] | None:
    """The step as the replay has it; None for one that it leaves out."""
    found = dict(step)
    if "mode" in found.get("options", ()):
        found["options"] = {**found["options"], "mode": "append"}
    match step["kind"]:
        case "insert":
            found.pop("reads", None)
            return {**found, "overwrite": False} if is_insert else None
        case "table":
            is_target = is_before and step["name"].lower() == name.target.lower()
            return {**found, "read": False} if is_target or step["name"] == rejects else None
        case kind:
            return found if is_before and kind in _KEPT else None
