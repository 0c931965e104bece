"""Runs a script without writes, to check that its INSERTs INTO one location have the same columns."""

import contextlib
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StringType, StructType

from spark_runner.connectors.errors import ConnectorError, UnlikeColumns
from spark_runner.connectors.files.alike import refuse_unlike_queries, refuse_unlike_tables
from spark_runner.connectors.parts import Parts
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.sql.execution.columns import DeclaredColumns
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.script_session import ScriptSession
from spark_runner.sql.locations import comparable, overlap
from spark_runner.sql.text.errors import SqlError

_STRING = StringType()
_REHEARSED = {"set", "reset", "function", "table", "view", "insert", "catalog"}  # others change no columns


def adds_twice_to_one_place(plan: Mapping[str, Any], connectors: Parts) -> bool:
    """Whether two INSERTs add files to one location, so that their columns must be compared."""
    tables: dict[str, str] = {}
    written: set[str] = set()
    for step in plan["steps"]:
        if step["kind"] == "table":
            files = step["written"] and connectors.writes_files(step["connector"])
            tables[step["name"].lower()] = step["location"] if files else ""
        elif step["kind"] == "insert" and (location := tables[step["target"].lower()]):
            place = comparable(location)
            if place in written and not step["overwrite"]:
                return True
            written.add(place)
    return False


class UnknownColumns(SparkRunnerError):
    """The columns of a table depend on the rows that the script writes there."""


class Rehearsal(ScriptSession):
    """Tracks the columns that each INSERT would leave at its location; None = unknown."""

    def run(self) -> None:
        """Raise SqlError for INSERTs of different columns; the execution reports all other errors."""
        self.left: dict[str, StructType | None] = {}
        self.writers: dict[str, Mapping[str, Any]] = {}
        for step in self.steps:
            if step["kind"] not in _REHEARSED:
                continue
            try:
                self.step(step)
            except SqlError as error:
                if isinstance(error.__cause__, UnlikeColumns):
                    raise

    def insert(self, step: Mapping[str, Any]) -> None:
        """Record the columns that it would leave at its target, and compare them with the previous ones."""
        table = self.target(step)
        if not self.connectors.writes_files(table["connector"]):
            return
        place = comparable(table["location"])
        before = None if step["overwrite"] else self.left.get(place)
        earlier = None if step["overwrite"] else self.writers.get(place)
        self.left[place], self.writers[place] = before, table
        try:
            if earlier is not None:
                refuse_unlike_tables(earlier, table)
            given = self.query(step, table).schema
            if before is None:
                self.left[place] = given
            else:
                refuse_unlike_queries(before, given, table["connector"], table["options"])
        except ConnectorError as error:
            raise self.error(f"table '{table['name']}': {error}", step) from error
        finally:
            self.refresh(table["location"])

    def columns(self, step: Mapping[str, Any]) -> DeclaredColumns:
        """Without metadata: the frames of targets that are not written yet have none."""
        return DeclaredColumns(step, self.passage, self.sent, has_metadata=False)

    def declare(self, step: Mapping[str, Any]) -> None:
        """Make the name readable, or remove it: its previous meaning may have other columns."""
        try:
            super().declare(step)
        except SqlError:
            with contextlib.suppress(*SPARK_ERRORS):
                self.session.catalog.dropTempView(step["name"])

    def table_frame(self, step: Mapping[str, Any]) -> DataFrame | None:
        """An empty frame with the columns that readers will see; raises SqlError while they are unknown."""
        changed = self.changed_places(step)
        if not changed:
            return super().table_frame(step)
        columns = self.schema(step)
        if any(self.writers[place]["options"]["partition_by"] for place in changed):
            columns = None  # Spark moves partition columns behind the others
        elif columns is None and changed == [comparable(step["location"])]:
            columns = _read_back(step, self.writers[changed[0]], self.left[changed[0]])
        if columns is None:
            message = f"table '{step['name']}': its columns are unknown until it is written"
            raise self.error(message, step) from UnknownColumns(message)
        names = [sql.lit(None).cast(field.dataType).alias(field.name) for field in columns.fields]
        return self.session.range(0).select(*names)

    def changed_places(self, step: Mapping[str, Any]) -> list[str]:
        """The places that earlier INSERTs have written, and that a table reads."""
        read = comparable(step["location"]) if step["location"] else ""
        return [place for place in self.left if read and overlap(place, read)]


def _read_back(
    reader: Mapping[str, Any], writer: Mapping[str, Any], columns: StructType | None
) -> StructType | None:
    """The written columns as a reader finds them in the files; None where Spark derives them."""
    own = {"path": "", "mode": ""}
    options = {**reader["options"], **own}
    if (
        columns is None
        or reader["connector"] != writer["connector"]
        or options != {**writer["options"], **own}
    ):
        return None
    if options["partition_by"] or reader["connector"] == "json" or not options.get("header", True):
        return None

    def found(kind: DataType) -> DataType:
        return _STRING if reader["connector"] == "csv" else kind

    found_columns = StructType()
    for field in columns.fields:
        found_columns = found_columns.add(field.name, found(field.dataType))
    return found_columns
