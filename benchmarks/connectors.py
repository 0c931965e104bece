"""Connectors against what people write by hand, in one run, in turn. Last line: JSON, ratios of medians.

`jdbc_upsert_rows`: 500,000 rows into PostgreSQL against `foreachPartition` with `executemany` of 1,000 rows
in psycopg2, which sends them row by row.
`jdbc_upsert_pipelined`: the same with psycopg 3, which does not wait for the answer of each row.
`jdbc_upsert_copy`: the same against COPY into a staging table and one INSERT ... ON CONFLICT, by hand.
`jdbc_read`: all rows of a table against Spark's own reader, with as many partitions and the same fetch size.
`elasticsearch`: documents with ids against `parallel_bulk` of elasticsearch-py in `foreachPartition`.
`redis`: JSON objects against pipelines of 1,000 commands of redis-py in `foreachPartition`.
`kafka_blackhole`, `kafka_parquet`: a topic of 2,000,000 objects against hand-written Structured Streaming.
Ratios are ours / peer in rows per second. Two peers need `pip install psycopg2-binary 'psycopg[binary]'`.

    python benchmarks/connectors.py [--rows 500000] [--rounds 3] [--slow-rows 500000] [--only redis]
"""

import argparse
import functools
import importlib
import itertools
import json
import os
import statistics
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

import elasticsearch_rows
import kafka_rows
import redis_rows

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.jdbc.sink import JdbcSink
from spark_runner.connectors.jdbc.source import JdbcSource
from spark_runner.connectors.jdbc.wire import Login, Wire
from spark_runner.connectors.options import to_plan, validate
from tests.kafka_support import kafka_jars
from tests.servers.databases import PASSWORD, DatabaseServer, driver_jars, local_postgres, postgres_at

COLUMNS = ("id", "name", "amount", "at")
TABLE = "(id bigint PRIMARY KEY, name text, amount numeric(12,2), at timestamptz)"
PARTITIONS = 4
READS = 7  # of each reader in a round: one takes half a second, and differs from the next by a third
CONNECTORS = ("jdbc", "elasticsearch", "redis", "kafka")
CLIENTS = ("psycopg2", "psycopg")
BATCH = 1000  # rows of `executemany`


def session() -> SparkSession:
    """Two tasks at a time."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    known = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, known))  # for the tasks, as the zip of a job
    jars = ",".join(map(str, (*driver_jars(), *kafka_jars())))
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config(
        "spark.python.sql.dataFrameDebugging.enabled", "false"
    )  # as in the driver of a script
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    return builder.getOrCreate()


def rows(spark: SparkSession, count: int, step: int) -> DataFrame:
    """Rows with texts, decimals and times; `step` changes the values."""
    return spark.range(0, count, 1, PARTITIONS).selectExpr(
        "id",
        f"concat('name of ', id, ' in step ', {step}) AS name",
        f"CAST(id * 1.25 + {step} AS DECIMAL(12,2)) AS amount",
        "timestamp_micros(1700000000000000 + id * 1000003) AS at",
    )


def ours(frame: DataFrame, database: DatabaseServer) -> None:
    """The connector."""
    given = {"url": database.url, "username": database.user, "password": PASSWORD, "table": "t"}
    request = WriteRequest("append", Writer(uuid.uuid4().hex), ("id",))
    JdbcSink().write(frame, to_plan(validate("jdbc", given)), request)


def by_rows(frame: DataFrame, database: DatabaseServer, client: str) -> None:
    """Statements with parameters, 1,000 rows at a time, as `executemany` of a client sends them."""
    host, port, name, user = database.host, database.port, database.database, database.user
    statement = (
        "INSERT INTO t (id, name, amount, at) VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
        " name = EXCLUDED.name, amount = EXCLUDED.amount, at = EXCLUDED.at"
    )

    def write(part: Iterator[Row]) -> None:
        connect = importlib.import_module(client).connect
        with connect(host=host, port=port, dbname=name, user=user, password=PASSWORD) as opened:
            cursor, batch = opened.cursor(), list[tuple[Any, ...]]()
            for row in part:
                batch.append(tuple(row))
                if len(batch) == BATCH:
                    cursor.executemany(statement, batch)
                    batch.clear()
            if batch:
                cursor.executemany(statement, batch)

    frame.foreachPartition(write)


def by_copy(frame: DataFrame, database: DatabaseServer) -> None:
    """COPY of lines that each task makes, then one statement."""
    login = Login(database.host, database.port, database.database, database.user, PASSWORD)
    database.run(
        "CREATE UNLOGGED TABLE IF NOT EXISTS staging AS SELECT * FROM t WITH NO DATA; TRUNCATE staging"
    )

    def write(part: Iterator[Row]) -> None:
        with Wire(login) as wire:
            wire.copy_in("COPY staging FROM STDIN", lines(part))

    frame.foreachPartition(write)
    database.run(
        "INSERT INTO t SELECT * FROM staging ON CONFLICT (id) DO UPDATE SET"
        " name = EXCLUDED.name, amount = EXCLUDED.amount, at = EXCLUDED.at"
    )


def lines(part: Iterator[Row]) -> Iterator[bytes]:
    """Rows as text of COPY, 2,000 at a time."""
    while some := list(itertools.islice(part, 2000)):
        yield "".join(f"{row.id}\t{row.name}\t{row.amount}\t{row.at.isoformat()}\n" for row in some).encode()


def read_ours(spark: SparkSession, database: DatabaseServer, _count: int) -> DataFrame:
    """The connector, which finds out itself how to divide the table."""
    given = {"url": database.url, "username": database.user, "password": PASSWORD, "table": "t"}
    return JdbcSource().read(spark, to_plan(validate("jdbc", {**given, "partitions": str(PARTITIONS)})), None)


def read_by_spark(spark: SparkSession, database: DatabaseServer, count: int) -> DataFrame:
    """Spark's reader with the bounds given."""
    reader = spark.read.format("jdbc").option("url", database.url).option("driver", "org.postgresql.Driver")
    reader = reader.option("dbtable", "t")
    reader = reader.option("user", database.user).option("password", PASSWORD).option("fetchsize", "10000")
    reader = reader.option("partitionColumn", "id").option("numPartitions", str(PARTITIONS))
    return reader.option("lowerBound", "0").option("upperBound", str(count)).load()


def read_all(frame: DataFrame) -> None:
    """Read each row, and leave it."""
    frame.write.format("noop").mode("append").save()


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(spark: SparkSession, count: int, slow: int, rounds: int) -> dict[str, float]:
    """Medians of rows per second."""
    found = defaultdict[str, list[float]](list)
    with local_postgres() as port:
        database = postgres_at(port)
        database.run(f"CREATE TABLE t {TABLE}")
        ours(rows(spark, count, 0), database)  # so that all rounds replace rows; it also warms up
        by_copy(rows(spark, 2000, 0), database)
        read = {"read_ours": read_ours, "read_by_spark": read_by_spark}
        for client in CLIENTS:
            by_rows(rows(spark, 100, 0), database, client)
        for reader in read.values():
            read_all(reader(spark, database, count))
        for step in range(1, rounds + 1):
            works: dict[str, tuple[int, Callable[[], object]]] = {
                "ours": (count, lambda step=step: ours(rows(spark, count, step), database)),
                "by_copy": (count, lambda step=step: by_copy(rows(spark, count, step), database)),
                **{
                    client: (
                        slow,
                        lambda step=step, client=client: by_rows(rows(spark, slow, step), database, client),
                    )
                    for client in CLIENTS
                },
            }
            for name, (its, work) in works.items():
                database.run("VACUUM ANALYZE t")  # as the server does itself, some time later
                found[name].append(its / seconds(work))
                print(f"round {step}: {name} {found[name][-1]:,.0f} rows/s", flush=True)
            for name, reader in list(read.items()) * READS:
                found[name].append(
                    count / seconds(lambda reader=reader: read_all(reader(spark, database, count)))
                )
                print(f"round {step}: {name} {found[name][-1]:,.0f} rows/s", flush=True)
    return {name: statistics.median(rates) for name, rates in found.items()}


def main() -> None:
    """Measure, and print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--slow-rows", type=int, default=500_000, help="rows of `executemany`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=CONNECTORS, choices=CONNECTORS, help="connectors")
    given = parser.parse_args()
    spark, ratio = session(), dict[str, float]()
    if "jdbc" in given.only:
        rate = measure(spark, given.rows, given.slow_rows, given.rounds)
        ratio["jdbc_upsert_rows"] = rate["ours"] / rate["psycopg2"]
        ratio["jdbc_upsert_pipelined"] = rate["ours"] / rate["psycopg"]
        ratio["jdbc_upsert_copy"] = rate["ours"] / rate["by_copy"]
        ratio["jdbc_read"] = rate["read_ours"] / rate["read_by_spark"]
    if "elasticsearch" in given.only:
        rate = elasticsearch_rows.measure(functools.partial(rows, spark), given.rows, given.rounds)
        ratio["elasticsearch"] = rate["elasticsearch_ours"] / rate["elasticsearch_by_hand"]
    if "redis" in given.only:
        rate = redis_rows.measure(functools.partial(rows, spark), given.rows, given.rounds)
        ratio["redis"] = rate["redis_ours"] / rate["redis_by_hand"]
    if "kafka" in given.only:
        rate = kafka_rows.measure(spark, functools.partial(rows, spark), 4 * given.rows, given.rounds)
        for target in ("blackhole", "parquet"):
            name = f"kafka_{target}"
            ratio[name] = rate[f"{name}_ours"] / rate[f"{name}_by_hand"]
    spark.stop()
    print(json.dumps({"ratio": {name: round(value, 2) for name, value in ratio.items()}}))


if __name__ == "__main__":
    main()
