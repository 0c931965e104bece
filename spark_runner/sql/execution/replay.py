"""Turns the plan of a script into one that runs for the rows of a quarantine alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.files.inputs import file_read_below
from spark_runner.references.resolver import Resolver
from spark_runner.sql.execution.row_by_row import NotRowByRow, reads_row_by_row, tables_read
from spark_runner.sql.execution.script_session import ScriptSession
from spark_runner.sql.locations import comparable, overlap
from spark_runner.sql.text.errors import SqlError

_DECLARING = {"set", "reset", "table", "view", "function"}
_KEPT = _DECLARING | {"cache", "uncache", "begin_set", "end_set"}
_LEFT_OUT = {"query", "assert", "explain"}


def replayed(session: SparkSession, plan: Mapping[str, Any], resolver: Resolver) -> Mapping[str, Any]:
    """The plan with the rows of a quarantine in the place of their table, as its part `replay` says.

    Its INSERTs are those that read the table, and add rows. Queries, ASSERT and EXPLAIN are left out: they
    look at all rows. Raises SqlError for an INSERT whose result is not the sum of its results for some rows.
    """
    facts = plan["replay"]
    name = str(facts["table"]).lower()
    facts = {**facts, "pinned": _is_added_to(plan, str(facts["place"]))}
    steps = [_step(step, name, facts) for step in plan["steps"]]
    check = _Check(session, {**plan, "steps": steps}, name, resolver)
    check.run()
    kept = [step for step in steps if step["kind"] in _KEPT or id(step) in check.affected]
    return {**plan, "steps": kept}


def _step(step: Mapping[str, Any], name: str, facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The step with an INSERT that adds, and with the rows of the quarantine for the table."""
    found = dict(step)
    if "mode" in found.get("options", ()):
        found["options"] = {**found["options"], "mode": "append"}
    if found["kind"] == "insert":
        found |= {"overwrite": False, "replaces": step["overwrite"]}
    elif found["kind"] == "table" and found["name"].lower() == name:
        found["replayed"] = facts
    return found


def _is_added_to(plan: Mapping[str, Any], place: str) -> bool:
    """Whether rows that do not fit again are added where the replayed ones are."""
    name = (plan.get("bad_rows") or {}).get("table")
    return any(
        step["name"] == name
        and bool(step["location"])
        and overlap(comparable(step["location"]), comparable(place))
        for step in plan["steps"]
        if step["kind"] == "table"
    )


class _Check(ScriptSession):
    """Declares what the script declares, and finds the INSERTs that read the table; writes nothing."""

    def __init__(self, session: SparkSession, plan: Mapping[str, Any], name: str, resolver: Resolver) -> None:
        super().__init__(session, plan, lambda _phase: None, resolver)
        self._name = name
        self.affected = set[int]()  # the ids of steps
        self._changed = list[Mapping[str, Any]]()  # the tables that they write

    def run(self) -> None:
        """Check all INSERTs; raises SqlError."""
        for step in self.steps:
            if step["kind"] in _DECLARING | {"insert"}:
                self.step(step)
            elif step["kind"] not in _KEPT | _LEFT_OUT:
                raise self.error("a replay of rows cannot run this statement; run the whole job again", step)
        if not self.affected:
            table = next(step for step in self.steps if "replayed" in step)
            raise self.error(f"no INSERT reads table '{table['name']}', whose rows are replayed", table)

    def insert(self, step: Mapping[str, Any]) -> None:
        """Keep an INSERT that reads the table."""
        frame = self.rows(step)
        try:
            is_affected = reads_row_by_row(frame, self._name)
        except NotRowByRow as error:
            raise self._refusal(step, str(error)) from error
        if (table := next(self._changed_tables(frame), None)) is not None:
            words = f"it reads table '{table['name']}', to which an INSERT before it adds the replayed rows"
            raise self._refusal(step, words)
        if step["replaces"] and (table := self._replaced(self.target(step))) is not None:
            words = f"it replaces the rows that an INSERT before it adds to table '{table['name']}'"
            raise self._refusal(step, words)
        if is_affected:
            self.query(step, self.target(step))
            self.affected.add(id(step))
            self._changed.append(self.target(step))

    def _changed_tables(self, frame: DataFrame) -> Iterator[Mapping[str, Any]]:
        names = tables_read(frame)
        for table in self._changed:
            location = str(table["location"])
            if table["name"].lower() in names or (location and file_read_below(frame, location)):
                yield table

    def _replaced(self, target: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The table of an INSERT before, whose rows are where the target is."""
        for table in self._changed:
            places = [comparable(str(each["location"])) for each in (table, target)]
            if table["name"] == target["name"] or (all(places) and overlap(*places)):
                return table
        return None

    def _refusal(self, step: Mapping[str, Any], words: str) -> SqlError:
        message = f"this INSERT cannot run for the rows of the quarantine alone: {words}"
        return self.error(f"{message}; run the whole job again instead", step)
