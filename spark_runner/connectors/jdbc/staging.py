"""Fills a staging table: the tasks of Spark write their rows, each over a connection of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    FractionalType,
    IntegralType,
    LongType,
    StringType,
    TimestampType,
)

from spark_runner.connectors.arrow_tasks import map_batches
from spark_runner.connectors.base import Tolerance
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.copy_sieve import SievingCopyTask
from spark_runner.connectors.jdbc.copy_task import RESULT, CopyTask
from spark_runner.connectors.jdbc.copy_text import line, plain_text
from spark_runner.connectors.jdbc.database import Database
from spark_runner.connectors.jdbc.dialect import DELETE, GIVEN, REASON, ROW, Dialect
from spark_runner.connectors.jdbc.failures import DatabaseFailed, failure
from spark_runner.connectors.jdbc.names import TableName
from spark_runner.connectors.jdbc.target import Target
from spark_runner.connectors.rows import column, row_of
from spark_runner.connectors.session_settings import changed

_BYTES_OF_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
_NO_COPY = (
    "such a row is set aside by COPY alone: set option 'copy_rows' to 'true', and leave parameters out of the"
    " 'url' that COPY does not have"
)
MOST_ROWS = 10_000
"""Rows of one write that may be rejected, whatever the script allows: each costs dozens of statements."""
_MAX_BYTES = str(8 * 1024 * 1024)  # of rows that a task holds at once


@dataclass(frozen=True)
class Filled:
    """The rows in a staging table that count."""

    rows: int
    tasks: Sequence[int] = ()  # that wrote them; empty: all rows of the table


@dataclass(frozen=True)
class Sieve:
    """What a write needs whose rows may be rejected."""

    dialect: Dialect
    tolerance: Tolerance
    is_ascii: bool = False  # the rows as JSON have no other characters

    def most(self, rows: int | None = None) -> int:
        """The most rows that may be rejected, perhaps of a number of rows."""
        return min(MOST_ROWS, self.tolerance.rows if rows is None else self.tolerance.of(rows))


@dataclass(frozen=True)
class _Field:
    name: str  # in the staging table
    value: Column
    kind: DataType
    target: str


def fill(  # noqa: PLR0917 - a write, and where it goes
    database: Database,
    frame: DataFrame,
    target: Target,
    staging: TableName,
    options: Mapping[str, Any],
    sieve: Sieve | None = None,
) -> Filled:
    """Write all rows of a frame into a staging table; raises ConnectorError, and errors of Spark.

    With a sieve, the table is one of those that its dialect makes.
    """
    fields = [
        _Field(each.name, column(each.given.name), each.given.dataType, each.type) for each in target.columns
    ]
    by_copy = database.address.family == POSTGRESQL and options["copy_rows"] and database.login.is_possible
    if target.key or sieve or not by_copy:  # the order decides which row of a key is the last one
        fields.append(_Field(ROW, sql.monotonically_increasing_id(), LongType(), "bigint"))
    if target.delete:
        fields.append(_Field(DELETE, column(target.delete), BooleanType(), "boolean"))
    if sieve:
        fields.append(_Field(GIVEN, row_of(frame, is_ascii=sieve.is_ascii), StringType(), "text"))
    if by_copy:
        names = staging.columns([each.name for each in fields])
        task = CopyTask(database.login, f"COPY {staging} ({names}) FROM STDIN")
        cells = [line([(each.value, each.kind, each.target) for each in fields]).alias("line")]
        if sieve:
            reasons = f"COPY {staging} ({REASON}, {GIVEN}) FROM STDIN"
            task = SievingCopyTask(task.login, task.statement, reasons, sieve.most())
            cells.append(fields[-1].value.alias("row"))
        return _copy(database, frame.select(*cells).coalesce(int(options["connections"])), task)
    is_mysql = database.address.family == MYSQL
    made = [_loose(each) if sieve and is_mysql else _for_jdbc(each, is_mysql=is_mysql) for each in fields]
    rows = frame.select(*[value.alias(each.name) for value, each in zip(made, fields, strict=True)])
    try:
        return _insert(database, rows, sieve.dialect.given(staging) if sieve else staging, options)
    except DatabaseFailed as error:
        if sieve and error.is_of_a_row and not is_mysql:
            raise error.with_advice(_NO_COPY) from error
        raise


def _copy(database: Database, lines: DataFrame, task: CopyTask) -> Filled:
    with changed(lines.sparkSession, {_BYTES_OF_BATCH: _MAX_BYTES}):
        done = map_batches(lines, task, RESULT).collect()
    for each in done:
        if each.message is not None:
            raise failure(database.address, each.message, each.state)
    return Filled(sum(each.row_count for each in done), [each.task for each in done if each.row_count])


def _insert(database: Database, rows: DataFrame, staging: TableName, options: Mapping[str, Any]) -> Filled:
    settings = {
        **database.spark_options(),
        "dbtable": str(staging),
        "batchsize": str(options["batch_rows"]),
        "numPartitions": str(options["connections"]),
    }
    if database.address.family == MYSQL:
        settings |= {"useBulkStmts": "true", "sessionVariables": "time_zone='+00:00'"}
    else:
        settings |= {"reWriteBatchedInserts": "true", "stringtype": "unspecified"}
    with database.errors():
        rows.write.format("jdbc").mode("append").options(**settings).save()
    with database.connection() as connection:
        ((count, single),) = connection.rows(f"SELECT count(*), count(DISTINCT {ROW}) FROM {staging}")
    if count != single:
        # A task wrote its rows, and Spark lost its answer and ran it again.
        raise TargetChanged(f"a task of Spark wrote its rows twice: {count} instead of {single}")
    return Filled(int(count or 0))


def _for_jdbc(each: _Field, *, is_mysql: bool) -> Column:
    if is_mysql and isinstance(each.kind, TimestampType):
        # TIMESTAMP is a point in time, DATETIME what a clock shows.
        is_point = each.target.startswith("timestamp")
        return (_in_utc(each.value) if is_point else each.value.cast("timestamp_ntz")).cast("string")
    if not is_mysql and isinstance(each.kind, TimestampType):
        shown = each.value.cast("timestamp_ntz")
        return each.value if "with time zone" in each.target else shown
    return plain_text(each.value, each.kind)


def _loose(each: _Field) -> Column:
    """A value for a table of `MySql.create_sieve`, which takes each: most of them as text."""
    value = _for_jdbc(each, is_mysql=True)
    if isinstance(each.kind, BooleanType | IntegralType | DecimalType | BinaryType):
        return value
    if isinstance(each.kind, FractionalType):
        value = value.cast("double")  # the text of a FLOAT has less digits
    return value.cast("string")


def _in_utc(value: Column) -> Column:
    """What a clock in UTC shows; that of the session shows an hour of autumn twice."""
    seconds = sql.unix_micros(value).cast("decimal(20,0)") * sql.lit(Decimal("0.000001"))
    epoch = sql.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return epoch + sql.make_dt_interval(secs=seconds.cast("decimal(18,6)"))
