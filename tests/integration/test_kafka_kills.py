"""A driver is killed by -9 while it drains a topic into another: after the next run no row is missing.

With a key, the last record of each key is that of a drain without a kill; repeated records are counted.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from tests.kafka_support import add_kafka, kafka_jars
from tests.sampling import chance, times
from tests.servers.kafka import Topics
from tests.servers.kafka_client import Record
from tests.spark_programs import program_environment
from tests.stream_driver import plan_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(300), pytest.mark.xdist_group("local_spark")]

ROWS, KEYS, BATCH = 400, 60, 20
INSERT = "INSERT INTO dst SELECT id, n, n % 7 = 0 AS gone FROM src"
NEVER = "1000000"  # the number of the micro-batch in which the driver would end by itself
START_S = 120


def script(topics: Topics, source: str, target: str) -> str:
    servers = topics.kafka.servers
    return f"""CREATE TABLE src (id BIGINT, n BIGINT) USING kafka OPTIONS (topic '{source}',
      bootstrap_servers '{servers}', max_offsets_per_trigger {BATCH});
    CREATE TABLE dst (id BIGINT, n BIGINT, gone BOOLEAN, PRIMARY KEY (id) NOT ENFORCED) USING kafka
      OPTIONS (topic '{target}', bootstrap_servers '{servers}', delete_column 'gone');
    {INSERT}"""


def last_by_key(records: list[Record]) -> dict[bytes | None, bytes | None]:
    return {each.key: each.value for each in records}


@pytest.mark.parametrize("number", range(times(1, 50)))
def test_a_drain_killed_at_random_leaves_the_last_record_of_each_key(
    spark: SparkSession, topics: Topics, tmp_path: Path, number: int
) -> None:
    add_kafka(spark)
    source, target, kafka = topics.new("source"), topics.new("target"), topics.kafka
    rows = [{"id": n % KEYS, "n": n} for n in range(ROWS)]
    kafka.produce(source, [json.dumps(each).encode() for each in rows])
    text = script(topics, source, target)
    jars = ",".join(map(str, kafka_jars()))
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.stream_driver", str(tmp_path), NEVER, "never"],
        env={**program_environment(), "PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell"},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert driver.stdin is not None
    driver.stdin.write(text.encode())
    driver.stdin.close()
    enough = chance(f"kafka kill {number}").randrange(1, ROWS - BATCH)
    try:
        wait_until(lambda: len(kafka.records(target)) >= enough, START_S, f"{enough} rows are written")
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert len(kafka.records(target)) < ROWS, "it was killed before its end"
    execute(spark, plan_of(text, tmp_path), lambda _: None)
    found = kafka.records(target)
    kept = {each["id"]: each for each in rows}
    expected = {
        str(key).encode(): None if each["n"] % 7 == 0 else json.dumps(each, separators=(",", ":")).encode()
        for key, each in kept.items()
    }
    assert last_by_key(found) == expected
    doubled = len(found) - ROWS
    assert 0 <= doubled <= BATCH  # what a topic without a key would show: at most one micro-batch
