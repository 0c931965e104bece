"""A driver is killed by -9 while it drains files into an index: then each key has its last row, once."""

import json
import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from tests.elasticsearch_support import Indices
from tests.sampling import chance, times
from tests.spark_programs import start_stream_driver
from tests.stream_driver import plan_of
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.drawn("kills of writers"),
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("elasticsearch"),
]

FILES, ROWS = 30, 1000  # of each file, which is a micro-batch
HALF = ROWS // 2  # the keys that a file has again from the one before
KEYS = (FILES + 1) * HALF
START_S = 120


@pytest.mark.parametrize("number", range(times(1, 50)))
def test_a_drain_killed_at_random_leaves_the_last_row_of_each_key(
    spark: SparkSession, indices: Indices, tmp_path: Path, number: int
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for file in range(FILES):
        rows = [json.dumps({"id": file * HALF + n, "n": file}) for n in range(ROWS)]
        (folder / f"{file:03}.json").write_text("\n".join(rows), "utf-8")
    index = indices.new(f"kills-{number}")
    text = "SET job.mode = 'available-now';\n"
    text += (
        f"CREATE TABLE src (id BIGINT, n BIGINT) USING json OPTIONS (path '{folder}',"
        " max_files_per_trigger '1');\n"
    )
    key = "id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED"
    versions = {} if number % 2 else {"version_column": "n"}
    text += indices.table("dst", index, key, **versions)
    text += "INSERT INTO dst SELECT * FROM src;"
    driver = start_stream_driver(text, tmp_path)
    enough = chance(f"elasticsearch kill {number}").randrange(1, KEYS // 2)
    try:
        wait_until(lambda: indices.count(index) >= enough, START_S, f"{enough} rows are written")
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert indices.count(index) < KEYS, "it was killed before its end"
    execute(spark, plan_of(text, tmp_path), lambda _: None)
    assert indices.count(index) == KEYS
    # The last row of a key has its greatest `n`: with another row of any key, the sum would be less.
    sums = {name: {"sum": {"field": name}} for name in ("id", "n")}
    found = indices.ask("GET", f"/{index}/_search?size=0", {"aggs": sums})["aggregations"]
    assert found["id"]["value"] == sum(range(KEYS))
    assert found["n"]["value"] == sum(min(key // HALF, FILES - 1) for key in range(KEYS))
