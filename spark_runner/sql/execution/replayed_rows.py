"""Reads the rows of a quarantine again, as the rows of the table from which they were set aside."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.format import format_options
from spark_runner.connectors.files.json_numbers import as_declared
from spark_runner.connectors.json_types import columns_read_as
from spark_runner.connectors.rows import struct_from_json
from spark_runner.sql.execution.judgement import FILE, RECORD, ROW, TEXT
from spark_runner.sql.text.literals import quote_name

_VALUE = "__orchestrator_value"
_TEXT = "__orchestrator_text"


def replayed_rows(
    session: SparkSession,
    step: Mapping[str, Any],
    options: Mapping[str, Any],
    schema: StructType | None,
    *,
    tolerant: bool,
) -> DataFrame:
    """The rows of the table of `step`, whose part `replayed` says which ones they are and how many.

    With `tolerant`, the text of a record that still does not fit is in the column RECORD; otherwise it fails
    the job. Raises ConnectorError for rows that cannot be replayed, or that are not all there.
    """
    if schema is None or step.get("metadata"):
        kind = "no columns" if schema is None else "metadata columns"
        raise ConnectorError(f"it declares {kind}, so that rows of a quarantine cannot be replayed")
    kept = rows_of_run(session, step["replayed"], ("record", "form", "file"))
    rows = _from_row(kept.filter(sql.col("form") == ROW), schema)
    texts = kept.filter(sql.col("form") == TEXT)
    if not texts.isEmpty():
        _refuse_partitioned(texts, schema)
        rows = rows.unionByName(_from_text(texts, str(step["connector"]), options, schema, tolerant=tolerant))
    return rows if tolerant else rows.drop(RECORD)


def rows_of_run(session: SparkSession, facts: Mapping[str, Any], columns: Iterable[str]) -> DataFrame:
    """The rows that a run has set aside from one table or INSERT, all of them, with these columns.

    The facts have an attempt where each attempt sets aside all rows anew.
    """
    # Files of earlier versions lack columns.
    found = session.read.option("mergeSchema", "true").parquet(str(facts["place"]))
    own = {name: str(facts[name]) for name in ("source", "run", "attempt") if name in facts}
    if missing := {*columns, *own} - set(found.columns):
        raise ConnectorError(
            f"the rows in {facts['place']} have no column {', '.join(sorted(missing))}, which a replay needs"
        )
    for name, value in own.items():
        found = found.filter(sql.col(name) == value)
    if (number := found.count()) != facts["rows"]:
        raise ConnectorError(
            f"{facts['place']} has {number:,} rows of it, and the job has recorded {facts['rows']:,}"
        )
    # A sink refuses to write where its rows come from.
    return found.localCheckpoint() if facts["pinned"] else found


def _from_row(kept: DataFrame, schema: StructType) -> DataFrame:
    """The rows that are kept as JSON; one that does not have these columns fails the job."""
    value = struct_from_json(sql.col("record"), schema)
    return _columns(kept, value, schema, sql.lit(None).cast("string")).drop(_TEXT)


def _from_text(
    kept: DataFrame, connector: str, options: Mapping[str, Any], schema: StructType, *, tolerant: bool
) -> DataFrame:
    """The records that are kept as they were read, decoded again."""
    if connector not in {"csv", "json"}:
        raise ConnectorError(f"a replay can decode records of csv and json, not of '{connector}'")
    if connector == "json":
        _refuse_arrays(kept)
    read = columns_read_as(schema) if connector == "json" else schema
    own = {**format_options(connector, options), "mode": "FAILFAST"}
    if tolerant:
        read = StructType([*read.fields, StructField(RECORD, StringType())])
        own |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RECORD}
    if connector == "csv":
        value = sql.from_csv("record", read.toDDL(), own)
    else:
        value = sql.from_json("record", read, own)
    record = sql.col(_VALUE)[RECORD] if tolerant else sql.lit(None).cast("string")
    decoded = _columns(kept, value, schema, record)
    if connector == "json":
        decoded = as_declared(decoded, schema, RECORD if tolerant else None, sql.col(_TEXT))
    return decoded.drop(_TEXT)


def _columns(kept: DataFrame, value: Column, schema: StructType, record: Column) -> DataFrame:
    cells = [sql.col(f"{_VALUE}.{quote_name(name)}") for name in schema.fieldNames()]
    held = kept.select(value.alias(_VALUE), sql.col("file").alias(FILE), sql.col("record").alias(_TEXT))
    return held.select(*cells, record.alias(RECORD), FILE, _TEXT)


def _refuse_arrays(texts: DataFrame) -> None:
    """Raise ConnectorError for lines with arrays: each row of such a line has the line as its record."""
    if found := texts.filter(sql.col("record").rlike(r"^\s*\[")).count():
        raise ConnectorError(
            f"{found:,} rows come from lines that are arrays of JSON: all rows of a line have one record,"
            " so that they cannot be replayed; correct the lines, and run the whole job again"
        )


def _refuse_partitioned(texts: DataFrame, schema: StructType) -> None:
    """Raise ConnectorError for records without the values that their folders have."""
    for name in schema.fieldNames():
        # Spark finds the column by the name of a folder in any case.
        if found := texts.filter(sql.lower("file").contains(f"/{name.lower()}=")).count():
            raise ConnectorError(
                f"the text of {found:,} records does not have column '{name}', which is a folder of their"
                " files; a replay cannot decode them"
            )
