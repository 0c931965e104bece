"""Reads and writes by Spark's Python data sources, whose code runs in the tasks of Spark.

The options of the table become attributes of a subclass, made for this table alone. So they travel inside
the serialized class: options of Spark itself, which may hold a password, would be in plans and in its UI.
"""

import itertools
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

_NUMBERS = itertools.count()


class TableSource(DataSource):
    """A Python data source for one table; a subclass defines `reader`, `writer` or both."""

    table: Mapping[str, Any] = {}
    """The options of the table, as its model checked them."""


def read_by(
    source: type[TableSource], session: SparkSession, options: Mapping[str, Any], schema: StructType
) -> DataFrame:
    """The rows that the reader of the source makes, with the columns of `schema`."""
    return session.read.format(_registered(source, session, options)).schema(schema).load()


def write_by(source: type[TableSource], frame: DataFrame, options: Mapping[str, Any]) -> int:
    """Write all rows with the writer of the source; returns their number."""
    observation = Observation()
    counted = frame.observe(observation, sql.expr("count(1)").alias("rows"))
    counted.write.format(_registered(source, frame.sparkSession, options)).mode("append").save()
    return int(observation.get["rows"])


def _registered(source: type[TableSource], session: SparkSession, options: Mapping[str, Any]) -> str:
    """Register a subclass with these options; returns its name, which no other table of the JVM has."""
    name = f"{source.__name__}_{next(_NUMBERS)}_{session.sparkContext.applicationId}".lower()
    members = {"table": dict(options), "name": classmethod(lambda _cls: name)}
    session.dataSource.register(type(source.__name__, (source,), members))
    if (jvm := session._jvm) is not None:  # noqa: SLF001 - PySpark has no public way to the active session
        # A writer looks the name up in the active session of its thread, not in that of its frame.
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # noqa: SLF001 - likewise
    return name
