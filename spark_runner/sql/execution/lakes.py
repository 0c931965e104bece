"""Writes tables of Iceberg and Delta Lake: their commits have marks, which further attempts find."""

import contextlib
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_runner.connectors.session_settings import changed
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.script_context import ScriptContext
from spark_runner.sql.grammar.statements import CATALOG_INSERTS, CatalogAction

ICEBERG, DELTA = "iceberg", "delta"

_SERIES, _NUMBER = "orchestrator.series", "orchestrator.write"  # in the summary of a snapshot
_PROPERTY, _OPTION = "spark.sql.iceberg.snapshot-property.", "spark.databricks.delta."
_NOTE = f"{_OPTION}commitInfo.userMetadata"
_BRANCH = re.compile(r"(.+)\.(?:branch_\w+|`branch_(?:[^`]|``)+`)")  # the table, and its branch
_COMMITS = 20  # of Delta Lake that are searched: those since the write, and some of other writers
_CHANGES = ("inserted", "updated", "deleted")


@dataclass(frozen=True)
class Mark:
    """The identity of a write; writes of one series have increasing numbers, in their order."""

    series: str
    number: int


@dataclass(frozen=True)
class LakeTable:
    """A table of one of the two kinds, with its name in SQL."""

    session: SparkSession
    name: str
    kind: str

    @contextlib.contextmanager
    def marked(self, mark: Mark) -> Iterator[None]:
        """Give the commits of the session a mark; Delta Lake leaves out writes up to the last number."""
        number = str(mark.number)
        if self.kind == ICEBERG:
            wanted = {f"{_PROPERTY}{_SERIES}": mark.series, f"{_PROPERTY}{_NUMBER}": number}
        else:
            wanted = {f"{_OPTION}write.txnAppId": mark.series, f"{_OPTION}write.txnVersion": number}
            if self.session.conf.get(_NOTE, None) is None:  # else the script has a note of its own
                wanted[_NOTE] = _note(mark)
        with changed(self.session, wanted):
            yield

    def has(self, mark: Mark) -> bool:
        """Whether a table of Iceberg has this write, or a later one of its series.

        Delta Lake looks for it in the transaction of the write. Raises the errors of Spark.
        """
        if self.kind != ICEBERG:
            return False
        found = self._snapshots().where(sql.col("series") == mark.series)
        return not found.where(sql.col("number") >= mark.number).isEmpty()

    def rows(self, mark: Mark, action: str, frame: DataFrame | None, since: float) -> int | None:
        """How many rows a write has added, changed or deleted; None if its commit is not found.

        `frame` is the result of the statement, None if an earlier attempt ran it; `since` is the time of its
        start. Raises the errors of Spark.
        """
        if self.kind == ICEBERG:
            return self._rows_of_snapshot(mark, action, frame, since)
        if frame is not None and "num_affected_rows" in frame.columns and (result := frame.first()):
            return int(result["num_affected_rows"]) if result["num_affected_rows"] >= 0 else None
        history = self.session.sql(f"DESCRIBE HISTORY {self.name} LIMIT {_COMMITS}")
        found = history.where(sql.col("userMetadata") == _note(mark)).select("operationMetrics").first()
        counts: Mapping[str, str] = (found and found[0]) or {}
        match action:
            case CatalogAction.MERGE:
                keys = [f"numTargetRows{each.title()}" for each in _CHANGES]
            case CatalogAction.DELETE:
                keys = ["numDeletedRows"]
            case _:
                keys = ["numOutputRows"]
        numbers = [int(counts[key]) for key in keys if key in counts]
        return sum(numbers) if numbers else None

    def _rows_of_snapshot(self, mark: Mark, action: str, frame: DataFrame | None, since: float) -> int | None:
        """Of Iceberg, which has no mark for a DELETE of whole files."""
        own = (sql.col("series") == mark.series) & (sql.col("number") == mark.number)
        if action == CatalogAction.DELETE and frame is not None:
            app = self.session.sparkContext.applicationId
            own |= (
                sql.col("series").isNull()
                & (sql.col("operation") == "delete")
                & (sql.col("summary")["spark.app.id"] == app)
                & (sql.col("committed_at") >= sql.timestamp_millis(sql.lit(int(since * 1000))))
            )
        found = (
            self._snapshots()
            .where(own)
            .orderBy(sql.desc("committed_at"))
            .select("summary", "operation")
            .first()
        )
        if found is None:  # it changed nothing, so there was nothing to commit
            return None if frame is None or action in CATALOG_INSERTS else 0
        counts: Mapping[str, str]
        counts, operation = found

        def number(key: str) -> int:
            return int(counts.get(key, 0))

        merged = [f"spark.merge-into.num-target-rows-{each}" for each in _CHANGES]
        if action == CatalogAction.MERGE and any(key in counts for key in merged):
            return sum(map(number, merged))
        if action == CatalogAction.DELETE:
            return number("deleted-records") - number("added-records") + number("added-position-deletes")
        # Before Spark 4.1, a MERGE that rewrites files does not say which of their rows are new.
        is_known = action != CatalogAction.MERGE or operation == "append"
        return number("added-records") if is_known else None

    def _snapshots(self) -> DataFrame:
        summary = sql.col("summary")
        numbered = summary[_NUMBER].try_cast("bigint").alias("number")
        return self._all_snapshots().select("*", summary[_SERIES].alias("series"), numbered)

    def _all_snapshots(self) -> DataFrame:
        """Those of all branches of the table: a mark is that of one write, to one of them."""
        try:
            return self.session.table(f"{self.name}.snapshots")
        except SPARK_ERRORS as error:
            of_branch = _BRANCH.fullmatch(self.name)
            if of_branch is None or not catalogs.is_missing(error):
                raise
            return self.session.table(f"{of_branch[1]}.snapshots")


def lake_kind(session: SparkSession, target: str) -> str:
    """The kind of the table of this name; empty if it is another one, or the table is not there.

    Raises the errors of Spark: a write without a look at its table could repeat an earlier one.
    """
    try:
        described = session.sql(f"DESCRIBE TABLE EXTENDED {target}").collect()
    except SPARK_ERRORS as error:
        if not catalogs.is_missing(error):
            raise
        return ""  # the statement that names it fails with a better message
    kinds = [str(row["data_type"]).lower() for row in described if row["col_name"] == "Provider"]
    return kinds[-1] if kinds and kinds[-1] in {ICEBERG, DELTA} else ""


def check_replaced(script: ScriptContext, step: Mapping[str, Any]) -> None:
    """Raise SqlError if a CREATE OR REPLACE TABLE has kept the rows of a table of Delta Lake.

    That does not replace a table which the catalog does not know, as one that is named by its path.
    """
    target = step["target"]
    try:
        if lake_kind(script.session, target) != DELTA:
            return
        is_replaced = not target.lower().startswith("delta.") and script.session.table(target).isEmpty()
    except SPARK_ERRORS as error:
        raise catalogs.failed(script, step, error) from error
    if not is_replaced:
        message = (
            f"Delta Lake does not replace '{target}', which its catalog does not know; write CREATE TABLE IF"
            " NOT EXISTS and INSERT OVERWRITE"
        )
        raise script.error(message, step)


def keeps_marks(session: SparkSession, action: str, target: str) -> bool:
    """Whether the commits of a statement that changes rows have a mark."""
    try:
        kind = lake_kind(session, target)
    except SPARK_ERRORS:
        return False
    return bool(kind) and not (kind == ICEBERG and action == CatalogAction.DELETE)


def run_write(
    script: ScriptContext, step: Mapping[str, Any], mark: Mark, of_set: Collection[str], *, repeats: bool
) -> int | None:
    """Run a statement that changes rows, once for all attempts if its table is of a lake.

    Returns the number of rows, None if it is not known. `repeats`: an earlier attempt may have run it. Raises
    SqlError.
    """
    frame, since = None, time.time()
    try:
        kind = lake_kind(script.session, step["target"])
        table = LakeTable(script.session, step["target"], kind)
        is_done = repeats and table.has(mark)
    except SPARK_ERRORS as error:
        raise catalogs.failed(script, step, error) from error
    if not kind:
        return catalogs.rows_written(catalogs.run(script, step, of_set), step["action"])
    if not is_done:
        with table.marked(mark):
            frame = catalogs.run(script, step, of_set)
    try:
        return table.rows(mark, step["action"], frame, since)
    except SPARK_ERRORS:
        return None  # the rows are written, and their number alone is missing


def _note(mark: Mark) -> str:
    return f"orchestrator {mark.series} {mark.number}"
