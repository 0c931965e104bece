"""Divides a table, so that several tasks of Spark read parts of it at the same time."""

import itertools
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.database import Connection, Database
from spark_runner.connectors.jdbc.names import quoted, table_name

_MIN_PAGES = 1024  # of 8 KiB; a smaller table is read faster over one connection
_PAGES = """
SELECT c.relpages, pg_relation_size(c.oid) / current_setting('block_size')::bigint,
current_setting('server_version_num')::int FROM pg_class c
WHERE c.oid = to_regclass(?) AND c.relkind IN ('r', 'm')"""
_MYSQL_KEY = """
SELECT k.column_name, t.table_rows FROM information_schema.key_column_usage k
JOIN information_schema.columns c USING (table_schema, table_name, column_name)
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE k.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND k.table_name = ?
AND k.constraint_name = 'PRIMARY' AND c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint')"""
_MIN_ROWS = 100_000
_WITH_RANGES = 140_000  # the version of PostgreSQL that reads a range of pages alone


def partitioned(
    database: Database, session: SparkSession, settings: Mapping[str, str], options: Mapping[str, Any]
) -> DataFrame:
    """The table in as many parts as the options ask for; in one if nothing divides it."""
    parts = int(options["partitions"]) or session.sparkContext.defaultParallelism
    reader = session.read.format("jdbc").options(**settings)
    if parts == 1:
        return reader.load()
    name, family = str(options["partition_column"]), database.address.family
    if not name and not options["query"]:
        if family == POSTGRESQL and (ranges := _page_ranges(database, options, parts)):
            properties = {key: value for key, value in settings.items() if key not in {"url", "dbtable"}}
            return session.read.jdbc(
                settings["url"], settings["dbtable"], predicates=ranges, properties=properties
            )
        if family == MYSQL:
            name = _integer_key(database, options)
    if not name:
        return reader.load()
    low, high = str(options["lower_bound"]), str(options["upper_bound"])
    if not low:
        with database.connection() as connection:
            low, high = _bounds(connection, quoted(family, name), settings["dbtable"])
    if not low:
        return reader.load()
    found = reader.option("partitionColumn", quoted(family, name)).option("numPartitions", str(parts))
    return found.option("lowerBound", low).option("upperBound", high).load()


def _bounds(connection: Connection, column: str, table: str) -> tuple[str, str]:
    """The lowest and the highest value; empty without rows."""
    ((low, high),) = connection.rows(f"SELECT min({column}), max({column}) FROM {table}")
    return low or "", high or ""


def _page_ranges(database: Database, options: Mapping[str, Any], parts: int) -> list[str]:
    """Conditions that divide a table of PostgreSQL by its pages; empty for a small one, or a view."""
    table = str(table_name(POSTGRESQL, str(options["table"])))
    with database.connection() as connection:
        found = connection.rows(_PAGES, table)
    if not found:
        return []
    pages, version = int(found[0][1] or 0), int(found[0][2] or 0)
    if pages < _MIN_PAGES or version < _WITH_RANGES:
        return []
    ends = [pages * part // parts for part in range(1, parts)]
    conditions = [f"ctid < '({ends[0]},0)'::tid"]
    conditions += [
        f"ctid >= '({low},0)'::tid AND ctid < '({high},0)'::tid" for low, high in itertools.pairwise(ends)
    ]
    return [*conditions, f"ctid >= '({ends[-1]},0)'::tid"]


def _integer_key(database: Database, options: Mapping[str, Any]) -> str:
    """The only column of the primary key of a large table of MySQL, if it is an integer; else empty."""
    table = table_name(MYSQL, str(options["table"]))
    with database.connection() as connection:
        found = connection.rows(_MYSQL_KEY, table.schema, table.name)
    if len(found) != 1 or int(found[0][1] or 0) < _MIN_ROWS:
        return ""
    return str(found[0][0])
