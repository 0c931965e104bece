"""Fills a staging table: the tasks of Spark write their rows, each over a connection of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, DataType, LongType, TimestampType

from spark_runner.connectors.arrow_tasks import map_batches
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.copy_task import RESULT, CopyTask
from spark_runner.connectors.jdbc.copy_text import line, plain_text
from spark_runner.connectors.jdbc.database import Database
from spark_runner.connectors.jdbc.dialect import DELETE, ROW
from spark_runner.connectors.jdbc.failures import failure
from spark_runner.connectors.jdbc.names import TableName
from spark_runner.connectors.jdbc.target import Target
from spark_runner.connectors.rows import column

_BYTES_OF_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
_MAX_BYTES = str(8 * 1024 * 1024)  # of rows that a task holds at once


@dataclass(frozen=True)
class Filled:
    """The rows in a staging table that count."""

    rows: int
    tasks: Sequence[int] = ()  # that wrote them; empty: all rows of the table


@dataclass(frozen=True)
class _Field:
    name: str  # in the staging table
    value: Column
    kind: DataType
    target: str


def fill(
    database: Database, frame: DataFrame, target: Target, staging: TableName, options: Mapping[str, Any]
) -> Filled:
    """Write all rows of a frame into a staging table; raises ConnectorError, and errors of Spark."""
    fields = [
        _Field(each.name, column(each.given.name), each.given.dataType, each.type) for each in target.columns
    ]
    if target.key:  # the order decides which row of a key is the last one
        fields.append(_Field(ROW, sql.monotonically_increasing_id(), LongType(), "bigint"))
    if target.delete:
        fields.append(_Field(DELETE, column(target.delete), BooleanType(), "boolean"))
    connections = int(options["connections"])
    if database.address.family == POSTGRESQL and options["copy_rows"] and database.login.is_possible:
        return _copy(database, frame, fields, staging, connections)
    return _insert(database, frame, fields, staging, options)


def _copy(
    database: Database, frame: DataFrame, fields: Sequence[_Field], staging: TableName, connections: int
) -> Filled:
    lines = frame.select(line([(each.value, each.kind, each.target) for each in fields]).alias("line"))
    names = staging.columns([each.name for each in fields])
    task = CopyTask(database.login, f"COPY {staging} ({names}) FROM STDIN")
    conf = frame.sparkSession.conf
    before = conf.get(_BYTES_OF_BATCH, None)
    conf.set(_BYTES_OF_BATCH, _MAX_BYTES)
    try:
        done = map_batches(lines.coalesce(connections), task, RESULT).collect()
    finally:
        conf.unset(_BYTES_OF_BATCH) if before is None else conf.set(_BYTES_OF_BATCH, before)
    for each in done:
        if each.message is not None:
            raise failure(database.address, each.message, each.state)
    return Filled(sum(each.row_count for each in done), [each.task for each in done if each.row_count])


def _insert(
    database: Database,
    frame: DataFrame,
    fields: Sequence[_Field],
    staging: TableName,
    options: Mapping[str, Any],
) -> Filled:
    is_mysql = database.address.family == MYSQL
    if all(each.name != ROW for each in fields):
        fields = [*fields, _Field(ROW, sql.monotonically_increasing_id(), LongType(), "bigint")]
    rows = frame.select(*[_for_jdbc(each, is_mysql=is_mysql).alias(each.name) for each in fields])
    settings = {
        **database.spark_options(),
        "dbtable": str(staging),
        "batchsize": str(options["batch_rows"]),
        "numPartitions": str(options["connections"]),
    }
    if is_mysql:
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


def _in_utc(value: Column) -> Column:
    """What a clock in UTC shows; that of the session shows an hour of autumn twice."""
    seconds = sql.unix_micros(value).cast("decimal(20,0)") * sql.lit(Decimal("0.000001"))
    epoch = sql.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return epoch + sql.make_dt_interval(secs=seconds.cast("decimal(18,6)"))
