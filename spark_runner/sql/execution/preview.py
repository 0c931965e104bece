"""The first rows of one table or view of a script; nothing is written."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_runner.protocol.redacted import has_secrets, longest_secret, redacted
from spark_runner.references.resolver import Resolver
from spark_runner.sql.execution.catalogs import missing_catalog
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, reason
from spark_runner.sql.execution.judgement import VERDICT
from spark_runner.sql.execution.places import on_this_host, with_built_ins
from spark_runner.sql.execution.script_session import ScriptSession
from spark_runner.sql.execution.unfit_records import unfit_record
from spark_runner.sql.grammar.calls import calls
from spark_runner.sql.grammar.references import names_in
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import quote_name


def preview(
    spark: SparkSession,
    plan: Mapping[str, Any],
    name: str,
    rows: int,
    width: int,
    *,
    resolver: Resolver | None = None,
) -> dict[str, Any]:
    """Up to `rows` rows of a declared name as text, cells cut to `width` characters, and their columns.

    `filtered` has the tables whose rows that do not fit are left out. Settings and the declarations that the
    name needs run; no other statement does. Raises SqlError.
    """
    plan = on_this_host(with_built_ins(plan))
    return _Preview(spark.newSession(), plan, lambda _phase: None, resolver).show(name, rows, width)


class _Preview(ScriptSession):
    """Declares what one name needs."""

    filtered: tuple[str, ...] = ()  # tables that may have rows which do not fit

    def show(self, name: str, rows: int, width: int) -> dict[str, Any]:
        """Declare the name, and read its first rows."""
        last = self._last_declaration(name)
        if last is None:
            return self._show_catalog_table(name, rows, width)
        needed = self._needed(last)
        functions = self._called(needed)
        for index, step in enumerate(self.steps[: last + 1]):
            if index in functions:
                self.step(step)
            elif not self._changes_names(step) and index in needed:
                self.step({**step, "read": True})  # also a table that the script only writes
        step = self.steps[last]
        try:
            frame = self.session.table(quote_name(name))
            cells = _cut(frame, width).limit(rows + 1).collect()
        except SPARK_ERRORS as error:
            if unfit := unfit_record(self, error, step):
                raise unfit from error
            place = self.passage(step["query"]) if step["kind"] == "view" else None
            found = self.sent.place(error, place) if place else None
            if found:
                passage, offset = found
                raise passage.error(reason(error), offset) from error
            raise self.error(f"reading '{step['name']}' failed: {reason(error)}", step) from error
        return {**_document(step["name"], frame, cells, rows, width), "filtered": list(self.filtered)}

    def _changes_names(self, step: Mapping[str, Any]) -> bool:
        """Run a setting or USE; returns whether the step is one of those, or acts on a catalog."""
        if step["kind"] in {"set", "reset"}:
            self.step(step)
        elif step["kind"] == "catalog":
            with contextlib.suppress(SqlError):  # the script may create the namespace; no name needs it then
                self.step(step)
        else:
            return False
        return True

    def _show_catalog_table(self, name: str, rows: int, width: int) -> dict[str, Any]:
        """The rows of a table of a catalog, which the script configures and perhaps makes the current one."""
        for step in self.steps:
            self._changes_names(step)
        try:
            frame = self.session.table(name)
            cells = _cut(frame, width).limit(rows + 1).collect()
        except SPARK_ERRORS as error:
            words = f"{reason(error)}{missing_catalog(self.session, error, name)}"
            raise self.source.error(f"reading '{name}' failed: {words}", 0) from error
        return {**_document(name, frame, cells, rows, width), "filtered": []}

    def judge(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
        """Note that the rows which do not fit are left out."""
        if VERDICT in frame.columns:
            self.filtered += (step["name"],)
        return frame

    def table_frame(self, step: Mapping[str, Any]) -> DataFrame:
        """The rows that are there now; raises SqlError for a target that has none yet."""
        frame = super().table_frame(step)
        if frame is None:
            message = f"there are no rows of table '{step['name']}' yet: only a run of the script writes them"
            raise self.error(message, step)
        return frame

    def _last_declaration(self, name: str) -> int | None:
        return max(
            (
                index
                for index, step in enumerate(self.steps)
                if step["kind"] in {"table", "view"} and step["name"].lower() == name.lower()
            ),
            default=None,
        )

    def _needed(self, last: int) -> set[int]:
        """The declarations that one needs, itself included; all before it where that cannot be known."""
        needed, wanted, is_open = set[int](), {self.steps[last]["name"].lower()}, False
        for index in range(last, -1, -1):
            step = self.steps[index]
            if step["kind"] not in {"table", "view"} or not (is_open or step["name"].lower() in wanted):
                continue
            needed.add(index)
            if step["kind"] == "view":
                names = names_in(self.passage(step["query"]).tokens)
                is_open |= names is None
                wanted |= names or frozenset()
        return needed

    def _called(self, needed: set[int]) -> set[int]:
        """The declarations of functions that these declarations may call."""
        texts = list[Any]()
        for index in needed:
            step = self.steps[index]
            texts += [step["query"]] if "query" in step else []
            texts += [column["expression"] for column in step.get("computed", ())]
            texts += [each["condition"] for each in step.get("expectations", ())]
        names = {name for text in texts for name, *_ in calls(self.passage(text).tokens)}
        return {
            index
            for index, step in enumerate(self.steps)
            if step["kind"] == "function" and step["name"].lower() in names
        }


def _document(
    name: str, frame: DataFrame, cells: Sequence[Sequence[str | None]], rows: int, width: int
) -> dict[str, Any]:
    return {
        "table": name,
        "columns": [
            {"name": field.name, "type": field.dataType.simpleString()} for field in frame.schema.fields
        ],
        "rows": [[_shown(cell, width) for cell in row] for row in cells[:rows]],
        "has_more": len(cells) > rows,
    }


def _cut(frame: DataFrame, width: int) -> DataFrame:
    """Each value as text, cut in Spark: a cell may be as large as the memory."""
    # Positions, not names: two columns of a query may have the same name.
    positional = frame.toDF(*[f"c{index}" for index in range(len(frame.columns))])
    texts = [sql.col(name).cast("string") for name in positional.columns]
    kept = width + 1 + longest_secret()  # a part of a secret is not recognized
    return positional.select(*[sql.substring(text, 1, kept) for text in texts])


def _shown(cell: str | None, width: int) -> str | None:
    if cell is None or len(cell) <= width:
        return redacted(cell) if has_secrets() else cell
    if has_secrets():
        longest = longest_secret()
        is_part = len(cell) > width + longest
        cell = redacted(cell)
        if is_part:  # half a secret may be at its end, and moves up when others become shorter
            return f"{cell[: max(0, min(width - 1, len(cell) - longest))]}…"
    return cell if len(cell) <= width else f"{cell[: width - 1]}…"
