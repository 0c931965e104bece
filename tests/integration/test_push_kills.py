"""Executors and drivers of a cluster are killed by -9 while a job pushes into a target that fails, too.

The target answers some requests with errors, takes some without an answer, and refuses some rows. Rows of a
key are in order as it first sees them, none is lost, and one that comes again has the same idempotency key.
"""

import json
import os
import signal
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.sampling import chance, times
from tests.servers.standalone import SMALL_APPLICATION, Standalone
from tests.servers.web import Received, Reply, WebServer, web_server
from tests.spark_programs import start_stream_driver
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.drawn("kills of writers"),
    pytest.mark.spark,
    pytest.mark.timeout(900),
]

ROUNDS = times(1, 50)
ROWS, KEYS, POISON = 1_500, 97, 499  # a row of so many is refused
ERRORS = TIMEOUTS = 0.01
START_S, MOST_DRIVERS = 300, 4
EXECUTOR = "CoarseGrainedExecutorBackend"
INSERT = f"""INSERT INTO dst SELECT id % {KEYS} AS k, id AS n, concat('lane ', id % {KEYS} % 5) AS lane
FROM range(0, {ROWS}, 1, 4)"""  # noqa: S608 - numbers of this test
SCRIPT = """SET job.error.limit.rows = 100; SET job.quarantine = bad;
CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');
CREATE TABLE dst (k BIGINT, n BIGINT, lane STRING, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'http', 'url' = '{url}/items', 'order_by' = 'n', 'lane' = 'lane', 'concurrency' = '8',
  'parallelism' = '2', 'connect_timeout' = '1', 'timeout' = '2');
"""


class Target:
    """What the target took: the numbers of each key as it first saw them."""

    def __init__(self, number: int) -> None:
        self._random = chance(f"push kills {number}")
        self.taken, self.keys = defaultdict[int, list[int]](list), dict[int, str]()
        self.requests, self._lock = 0, threading.Lock()
        self.server: WebServer

    def reply(self, received: Received) -> Reply:
        row, key = json.loads(received.body), received.headers["idempotency-key"]
        draw = self._random.random()
        with self._lock:
            self.requests += 1
            if row["n"] % POISON == POISON - 1:
                return Reply(422, b"poison")
            if draw < ERRORS:
                return Reply(500)
            assert self.keys.setdefault(row["n"], key) == key
            if row["n"] not in self.taken[row["k"]]:
                self.taken[row["k"]].append(row["n"])
        return Reply(delay_s=4) if draw < ERRORS + TIMEOUTS else Reply(delay_s=0.01)


@contextmanager
def driver(script: str, folder: Path, standalone: Standalone) -> Iterator["subprocess.Popen[bytes]"]:
    made = start_stream_driver(
        *(script, folder, (), folder / "driver.log"),
        master=standalone.url,
        conf=SMALL_APPLICATION | {"spark.cores.max": "2"},
    )
    try:
        yield made
    finally:
        if made.poll() is None:
            os.killpg(made.pid, signal.SIGKILL)
            made.wait()
        wait_until(lambda: not executors(standalone), START_S, "the executors end with their application")


def executors(standalone: Standalone) -> list[psutil.Process]:
    found = []
    for process in standalone.local().processes():
        with suppress(psutil.Error):
            found += [process] if any(EXECUTOR in each for each in process.cmdline()) else []
    return found


def kill(victim: str, made: "subprocess.Popen[bytes]", standalone: Standalone) -> None:
    if victim == "driver":
        os.killpg(made.pid, signal.SIGKILL)
        return
    for executor in executors(standalone):
        with suppress(psutil.NoSuchProcess):
            executor.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_no_row_is_lost_or_out_of_order_whoever_is_killed(
    number: int, spark: SparkSession, standalone: Standalone, tmp_path: Path
) -> None:
    target, random = Target(number), chance(f"push kills {number} when")
    victim = random.choice(["executor", "driver"])
    enough = random.randrange(50, ROWS)
    with web_server(target.reply) as target.server:
        script = SCRIPT.format(url=target.server.url) + INSERT
        with driver(script, tmp_path, standalone) as made:
            wait_until(lambda: target.requests >= enough or made.poll() is not None, START_S, "it pushes")
            assert made.poll() is None, (tmp_path / "driver.log").read_text("utf-8", "replace")[-3000:]
            kill(victim, made, standalone)
            with suppress(subprocess.TimeoutExpired):
                made.wait(START_S)
            is_done = made.poll() == 0
        for _ in range(MOST_DRIVERS):  # as a worker repeats a job that failed
            if is_done:
                break
            with driver(script, tmp_path, standalone) as made:
                made.wait(START_S)
                is_done = made.poll() == 0
        assert is_done, (tmp_path / "driver.log").read_text("utf-8", "replace")[-3000:]
    poison = set(range(POISON - 1, ROWS, POISON))
    for key in range(KEYS):
        assert target.taken[key] == [n for n in range(key, ROWS, KEYS) if n not in poison], (
            f"{victim}, {enough}"
        )
    kept = spark.read.json(str(tmp_path / "bad")).collect()
    assert {(json.loads(each.record)["n"], each.reason) for each in kept} == {
        (n, "HTTP 422 poison") for n in poison
    }
    assert len(kept) == len(poison)
