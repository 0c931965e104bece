"""A topic of Kafka into a blackhole, and into Parquet: scripts against hand-written Structured Streaming.

Both read all records of a topic in micro-batches of the same size, parse them with the same columns, and have
a checkpoint.
"""

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

from spark_runner.sql.execution.execution import execute
from tests.servers.kafka import Kafka, start_kafka
from tests.stream_driver import plan_of

COLUMNS = "id BIGINT, name STRING, amount DECIMAL(12,2), at TIMESTAMP"
PARTITIONS = 4
BATCHES = 4
WARM_UP = 2  # rounds, until the JVM has compiled what reads the records


def ours(spark: SparkSession, servers: str, rows_of_batch: int, target: str, folder: Path) -> None:
    """The script of a job."""
    source = (
        f"CREATE TABLE src ({COLUMNS}) USING kafka OPTIONS (topic 'rows', bootstrap_servers '{servers}',"
        f" starting_offsets 'earliest', max_offsets_per_trigger {rows_of_batch})"
    )
    options = f" OPTIONS (path '{folder}/out')" if target == "parquet" else ""
    script = ";\n".join(
        (source, f"CREATE TABLE dst USING {target}{options}", "INSERT INTO dst SELECT * FROM src")
    )
    execute(spark, plan_of(script, folder), lambda _: None)


def by_hand(spark: SparkSession, servers: str, rows_of_batch: int, target: str, folder: Path) -> None:
    """The same as a program, with the settings of Spark."""
    spark.conf.unset("spark.sql.streaming.disabledV2MicroBatchReaders")  # a script chose its reader
    reader = spark.readStream.format("kafka").option("subscribe", "rows")
    reader = reader.option("kafka.bootstrap.servers", servers).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", str(rows_of_batch)).load()
    parsed = frame.select(from_json(col("value").cast("string"), COLUMNS).alias("row")).select("row.*")
    writer = parsed.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    if target == "parquet":
        writer = writer.format("parquet").option("path", f"{folder}/out").option("compression", "zstd")
    else:
        writer = writer.format("noop")
    writer.trigger(availableNow=True).start().awaitTermination()


def measure(
    spark: SparkSession, rows: Callable[[int, int], DataFrame], count: int, rounds: int
) -> dict[str, float]:
    """Medians of rows per second; `rows` makes that many rows of a step."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        (Path(folder) / "kafka").mkdir()
        kafka = start_kafka(Path(folder) / "kafka", stack)
        kafka.create("rows", PARTITIONS)
        writer = rows(count, 0).selectExpr("to_json(struct(*)) AS value").write.format("kafka")
        writer.option("kafka.bootstrap.servers", kafka.servers).option("topic", "rows").save()
        return _rounds(spark, kafka, count, rounds)


def _rounds(spark: SparkSession, kafka: Kafka, count: int, rounds: int) -> dict[str, float]:
    found = defaultdict[str, list[float]](list)
    works = (("ours", ours), ("by_hand", by_hand))
    for step in range(1 - WARM_UP, rounds + 1):
        for target in ("blackhole", "parquet"):
            for who, work in works:
                name = f"kafka_{target}_{who}"
                with tempfile.TemporaryDirectory() as folder:
                    start = time.perf_counter()
                    work(spark, kafka.servers, count // BATCHES, target, Path(folder))
                    seconds = time.perf_counter() - start
                    if target == "parquet":
                        _check(spark, name, folder, count)
                if step > 0:
                    found[name].append(count / seconds)
                    print(f"round {step}: {name} {found[name][-1]:,.0f} rows/s", flush=True)
    return {name: statistics.median(rates) for name, rates in found.items()}


def _check(spark: SparkSession, name: str, folder: str, count: int) -> None:
    written = spark.read.parquet(f"{folder}/out").where("id IS NOT NULL AND at IS NOT NULL").count()
    if written != count:
        raise AssertionError(f"{name}: {written} rows of {count}")
