"""A driver is killed by -9 while it sends rows: after the next run no row is missing.

A receiver that honours the keys of requests has each row once; repeated requests are counted.
"""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
from tests.sampling import chance, times
from tests.servers.web import Received, Reply, WebServer, ok, web_server
from tests.spark_programs import start_stream_driver
from tests.stream_driver import plan_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.campaign, pytest.mark.drawn("kills of writers"), pytest.mark.timeout(300)]

FILES, ROWS = 8, 25
START_S = 120
HELD_S = 10.0  # far longer than the kill of the processes takes
STREAM = """SET job.mode = 'available-now';
CREATE TABLE src (id BIGINT) USING json OPTIONS (path 'in', max_files_per_trigger 1);
CREATE TABLE dst (id BIGINT) USING http OPTIONS (url '{url}/items');
INSERT INTO dst SELECT id FROM src"""
BATCH = STREAM.replace("available-now", "batch").replace(", max_files_per_trigger 1", "")


def ids(server: WebServer) -> list[int]:
    return [json.loads(each.body)["id"] for each in server.received]


@pytest.mark.parametrize("script", [STREAM, BATCH], ids=["stream", "batch"])
@pytest.mark.parametrize("number", range(times(1, 25)))
def test_rows_of_a_driver_killed_at_random_are_all_there(
    spark: SparkSession, tmp_path: Path, number: int, script: str
) -> None:
    (tmp_path / "in").mkdir()
    for file in range(FILES):
        lines = [json.dumps({"id": ROWS * file + row}) for row in range(ROWS)]
        (tmp_path / "in" / f"{file}.json").write_text("\n".join(lines), "utf-8")
    enough = chance(f"http kill {number}").randrange(1, ROWS * FILES // 2)
    with web_server() as server:

        def slow_from_the_kill(_: Received) -> Reply:
            return Reply(delay_s=HELD_S if len(server.received) >= enough else 0.005)

        server.reply = slow_from_the_kill
        text = script.format(url=server.url)
        driver = start_stream_driver(text, tmp_path)
        workers = list[psutil.Process]()
        try:
            wait_until(lambda: len(server.received) >= enough, START_S, f"{enough} rows are sent")
            workers = psutil.Process(driver.pid).children(recursive=True)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        # Python workers of Spark, in a group of their own, would send all rows that they hold.
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        assert not psutil.wait_procs(workers, START_S)[1]
        server.reply = ok
        sent = len(server.received)
        assert sent < FILES * ROWS, "it was killed before its end"
        # The run of the killed driver, as a worker repeats it.
        execute(spark, plan_of(text, tmp_path), lambda _: None, Writer("run", 2))
        assert set(ids(server)) == set(range(FILES * ROWS)), "no row is missing"
        kept = {each.headers["idempotency-key"]: each.body for each in server.received}
        assert len(kept) == FILES * ROWS, "none is doubled for a receiver that honours the keys"
        doubled = len(server.received) - FILES * ROWS
        assert 0 <= doubled <= (ROWS if script == STREAM else sent)
