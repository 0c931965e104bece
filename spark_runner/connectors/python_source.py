"""Reads and writes by Spark's Python data sources, whose code runs in the tasks of Spark.

The options of the table become attributes of a subclass, made for this table alone. So they travel inside
the serialized class: options of Spark itself, which may hold a password, would be in plans and in its UI.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError, OtherRows, TargetChanged, Unreachable
from spark_runner.connectors.java_classes import java_class
from spark_runner.connectors.read_counts import ReadCount
from spark_runner.protocol.redacted import spellings_within

_NUMBERS = itertools.count()


class TableSource(DataSource):
    """A Python data source for one table; a subclass defines `reader`, `writer` or both."""

    table: Mapping[str, Any] = {}
    """The options of the table, as its model checked them."""


KINDS = (OtherRows, Unreachable, TargetChanged, ConnectorError)
"""Errors of connectors that the driver makes again of those of tasks; subclasses become these."""


class TaskError(Exception):
    """An error of a reader or writer in a task, whose text Spark shows in its UI and its event log."""


def _read(self: Any, partition: object) -> Iterator[object]:
    """Read as the class does that this one masks: its rows come after the call.

    Spark counts the rows, and no bytes.
    """
    try:
        for rows in super(type(self), self).read(partition):
            self.read_count.add(0, getattr(rows, "nbytes", 0))  # of Arrow batches
            yield rows
    except Exception as error:  # noqa: BLE001 - any error has a text
        raise masked(error, self.secrets) from None


def _call(name: str) -> Callable[..., object]:
    """A method that calls the one of this name of the class that it masks."""

    def call(self: Any, *arguments: object) -> object:
        try:
            return getattr(super(type(self), self), name)(*arguments)
        except Exception as error:  # noqa: BLE001 - likewise
            raise masked(error, self.secrets) from None

    return call


def masked(error: Exception, secrets: tuple[str, ...]) -> Exception:
    """The error as tasks raise it: its type and its text, without these secrets."""
    text = str(error)
    for secret in secrets:  # the longest first
        text = text.replace(secret, "***")
    if isinstance(error, NotImplementedError):  # before 4.2, Spark recognises a reader of one partition by it
        return NotImplementedError(text)
    kinds = [each.__name__ for each in type(error).__mro__ if each in KINDS] or [type(error).__name__]
    return TaskError(f"{kinds[0]}: {text}")


def _masking(
    source: type[TableSource], secrets: tuple[str, ...], read_count: ReadCount | None
) -> dict[str, Any]:
    """Members of a subclass whose readers and writers mask their errors; readers count their bytes."""

    def masking(make: Callable[[], Any], methods: Mapping[str, Any]) -> Any:
        try:
            made = make()
        except Exception as error:  # noqa: BLE001 - likewise
            raise masked(error, secrets) from None
        made.__class__ = type(type(made).__name__, (type(made),), {"secrets": secrets, **methods})
        return made

    reads = {"partitions": _call("partitions"), "read": _read, "read_count": read_count}
    streams = {name: _call(name) for name in ("initialOffset", "latestOffset", "commit")} | reads
    writes = {name: _call(name) for name in ("write", "commit", "abort")}
    made = {
        "reader": lambda self, schema: masking(lambda: source.reader(self, schema), reads),
        "writer": lambda self, schema, overwrite: masking(
            lambda: source.writer(self, schema, overwrite), writes
        ),
    }
    if source.streamReader is not DataSource.streamReader:  # else Spark asks for another one
        made["streamReader"] = lambda self, schema: masking(
            lambda: source.streamReader(self, schema), streams
        )
    return made


def read_by(
    source: type[TableSource], session: SparkSession, options: Mapping[str, Any], schema: StructType
) -> DataFrame:
    """The rows that the reader of the source makes, with the columns of `schema`."""
    name = _registered(source, session, options, ReadCount(session))
    return session.read.format(name).schema(schema).load()


def stream_by(
    source: type[TableSource], session: SparkSession, options: Mapping[str, Any], schema: StructType
) -> DataFrame:
    """The rows of the stream reader of the source, with the columns of `schema`."""
    name = _registered(source, session, options, ReadCount(session))
    return session.readStream.format(name).schema(schema).load()


def write_by(source: type[TableSource], frame: DataFrame, options: Mapping[str, Any]) -> int:
    """Write all rows with the writer of the source; returns their number."""
    observation = Observation()
    counted = frame.observe(observation, sql.expr("count(1)").alias("rows"))
    counted.write.format(_registered(source, frame.sparkSession, options, None)).mode("append").save()
    return int(observation.get["rows"])


def _registered(
    source: type[TableSource], session: SparkSession, options: Mapping[str, Any], read_count: ReadCount | None
) -> str:
    """Register a subclass with these options; returns its name, which no other table of the JVM has."""
    name = f"{source.__name__}_{next(_NUMBERS)}_{session.sparkContext.applicationId}".lower()
    members: dict[str, Any] = {"table": dict(options), "name": classmethod(lambda _cls: name)}
    members |= _masking(source, tuple(spellings_within(map(str, options.values()))), read_count)
    session.dataSource.register(type(source.__name__, (source,), members))
    if session._jvm is not None:  # noqa: SLF001 - PySpark has no public way to the active session
        # A writer looks the name up in the active session of its thread, not in that of its frame.
        sessions = java_class(session, "org.apache.spark.sql.classic.SparkSession")
        sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001 - likewise
    return name
