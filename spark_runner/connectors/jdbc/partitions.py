"""Divides a table, so that several tasks of Spark read parts of it at the same time."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.database import Connection, Database
from spark_runner.connectors.jdbc.names import quoted, table_name

_POSTGRES_DRIVER = "org.postgresql.Driver"
_MIN_BYTES = 8 * 1024 * 1024  # a smaller table is read faster over one connection
# Ranges of pages (ctid) would be quicker to find, but an UPDATE moves its row to another page: of two
# connections, each with its own snapshot, none or both would read it. A key stays.
_POSTGRES_KEY = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid = ANY('{int2,int4,int8}'::regtype[]),
(SELECT to_json(ARRAY(SELECT quote_literal(v) FROM unnest(s.histogram_bounds::text::text[]) v))
 FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
 AND NOT s.inherited)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
WHERE c.oid = to_regclass(?) AND c.relkind = 'r' AND pg_relation_size(c.oid) >= ?::bigint"""
_MYSQL_KEY = """
SELECT k.column_name, t.table_rows FROM information_schema.key_column_usage k
JOIN information_schema.columns c USING (table_schema, table_name, column_name)
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE k.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND k.table_name = ?
AND k.constraint_name = 'PRIMARY' AND c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint')"""
_MIN_ROWS = 100_000


def partitioned(
    database: Database, session: SparkSession, settings: Mapping[str, str], options: Mapping[str, Any]
) -> DataFrame:
    """The table in as many parts as the options ask for; in one if nothing divides it."""
    parts = int(options["partitions"]) or session.sparkContext.defaultParallelism
    name, family, given = str(options["partition_column"]), database.address.family, dict(settings)
    low, high, ranges = str(options["lower_bound"]), str(options["upper_bound"]), list[str]()
    may_divide = parts > 1 and bool(name or family in {POSTGRESQL, MYSQL})
    if family != POSTGRESQL and not may_divide:  # there is nothing to ask
        return session.read.format("jdbc").options(**given).load()
    with database.connection() as connection:
        # Without a threshold, the URL has one.
        is_ours = given.get("driver") == _POSTGRES_DRIVER and "prepareThreshold" in given
        if is_ours and connection.is_direct():
            given["prepareThreshold"] = "-1"  # each value comes as bytes, which takes less time than a text
        if may_divide and not name and not options["query"]:
            if family == POSTGRESQL:
                name, ranges = _postgres_key(connection, options, parts)
            else:
                name = _mysql_key(connection, options)
        if may_divide and name and not ranges and not low:
            low, high = _bounds(connection, quoted(family, name), given["dbtable"])
    if ranges:
        properties = {key: value for key, value in given.items() if key not in {"url", "dbtable"}}
        return session.read.jdbc(given["url"], given["dbtable"], predicates=ranges, properties=properties)
    reader = session.read.format("jdbc").options(**given)
    if not may_divide or not name or not low:
        return reader.load()
    found = reader.option("partitionColumn", quoted(family, name)).option("numPartitions", str(parts))
    return found.option("lowerBound", low).option("upperBound", high).load()


def _bounds(connection: Connection, column: str, table: str) -> tuple[str, str]:
    """The lowest and the highest value; empty without rows."""
    ((low, high),) = connection.rows(f"SELECT min({column}), max({column}) FROM {table}")
    return low or "", high or ""


def _postgres_key(connection: Connection, options: Mapping[str, Any], parts: int) -> tuple[str, list[str]]:
    """The only column of the primary key of a large table, if it is an integer; and ranges of that key.

    The statistics of the server divide a key of any type into ranges of as many rows; without them, there are
    no ranges.
    """
    table = str(table_name(POSTGRESQL, str(options["table"])))
    found = connection.rows(_POSTGRES_KEY, table, _MIN_BYTES)
    if not found:
        return "", []
    name, kind, is_integer, histogram = found[0]
    bounds: list[str] = json.loads(histogram or "[]")
    inner = bounds[1:-1]
    picked = [inner[len(inner) * part // parts] for part in range(1, parts)] if inner else []
    ends = [f"{end}::{kind}" for end in dict.fromkeys(picked)]  # fewer bounds than parts: each once
    return str(name) if is_integer == "t" else "", _ranges(quoted(POSTGRESQL, str(name)), ends)


def _ranges(column: str, ends: Sequence[str]) -> list[str]:
    """Conditions for the rows before the first end, between each two, and after the last."""
    if not ends:
        return []
    between = [f"{column} >= {low} AND {column} < {high}" for low, high in itertools.pairwise(ends)]
    return [f"{column} < {ends[0]}", *between, f"{column} >= {ends[-1]}"]


def _mysql_key(connection: Connection, options: Mapping[str, Any]) -> str:
    """The only column of the primary key of a large table of MySQL, if it is an integer; else empty."""
    table = table_name(MYSQL, str(options["table"]))
    found = connection.rows(_MYSQL_KEY, table.schema, table.name)
    if len(found) != 1 or int(found[0][1] or 0) < _MIN_ROWS:
        return ""
    return str(found[0][0])
