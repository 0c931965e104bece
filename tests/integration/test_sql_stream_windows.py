"""Windows of streams: counts and distinct counts, by the time of events and of processing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

WINDOWS = """
CREATE TABLE src (page STRING, user STRING, at TIMESTAMP, WATERMARK FOR at AS at)
    USING json OPTIONS (path 'in', max_files_per_trigger 1);
CREATE VIEW counts AS SELECT page, TUMBLE_START(at, INTERVAL '10' MINUTE) AS began,
    TUMBLE_END(at, INTERVAL '10' MINUTE) AS ended, COUNT(*) AS clicks, COUNT(DISTINCT user) AS users,
    COUNT(DISTINCT user, page) AS pairs, COUNT(DISTINCT user) FILTER (WHERE user > 'b') AS late
    FROM src GROUP BY page, TUMBLE(at, INTERVAL '10' MINUTE);
CREATE TABLE dst USING json OPTIONS (path 'out-{mode}');
INSERT INTO dst SELECT * FROM counts;
"""


def test_a_stream_counts_distinct_values_as_a_batch_does(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    users = ["a", "b", "c", None]
    for part in range(3):
        rows = [
            {"page": f"p{n % 2}", "user": users[n % 4], "at": f"2026-01-01T{part:02}:{n:02}:00Z"}
            for n in range(0, 60, 1 + part)
        ]
        text = "\n".join(map(json.dumps, rows))
        (tmp_path / "in" / f"{part}.json").write_text(text, "utf-8")
    last = {"page": "p0", "user": "z", "at": "2026-01-02T00:00:00Z"}  # ends all windows before it
    (tmp_path / "in" / "9.json").write_text(json.dumps(last), "utf-8")
    # A stream reads files by their times in milliseconds, and those of one may be in any order.
    for number, file in enumerate(sorted((tmp_path / "in").iterdir())):
        os.utime(file, (1_767_000_000 + number,) * 2)
    found: dict[str, list[Any]] = {}
    for mode in ("batch", "available-now"):
        script = f"SET job.mode = '{mode}';\n{WINDOWS.format(mode=mode)}"
        execute(spark, plan_of(script, tmp_path), lambda _: None)
        ended = spark.read.json(str(tmp_path / f"out-{mode}")).where("began < '2026-01-02'")
        found[mode] = sorted(map(tuple, ended.collect()))
    assert found["batch"] == found["available-now"]
    assert len(found["batch"]) == 2 * 6 + 6 + 2 * 6  # every second minute is of one page


def test_windows_of_processing_time_end_with_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    script = """SET job.mode = 'streaming'; SET job.trigger = '200 ms';
        CREATE TABLE src (timestamp TIMESTAMP, value BIGINT, pt AS PROCTIME())
            USING rate OPTIONS (rows_per_second 20);
        CREATE TABLE dst USING json OPTIONS (path 'out');
        INSERT INTO dst SELECT TUMBLE_START(pt, INTERVAL '1' SECOND) AS began, COUNT(*) AS n,
            COUNT(DISTINCT value) AS distinct_values FROM src GROUP BY TUMBLE(pt, INTERVAL '1' SECOND);"""

    def look() -> None:
        texts = [file.read_text("utf-8") for file in (tmp_path / "out").glob("*.json")]
        if sum(text.count("\n") for text in texts) > 1:
            control.stopping.set()

    control = StreamControl(look)
    execute(spark, plan_of(script, tmp_path), lambda _: None, control=control)
    rows = spark.read.json(str(tmp_path / "out")).collect()
    assert len({row.began for row in rows}) == len(rows) >= 2
    assert all(row.n == row.distinct_values > 0 for row in rows)
