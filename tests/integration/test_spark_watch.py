"""The status of a real Spark; one application for all tests."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.history.samples import sample_of
from spark_runner.driver.progress import SparkMonitor
from spark_runner.driver.run_metrics import MAX_METRICS_BYTES, RunMetrics
from spark_runner.driver.spark_status import SparkStatus
from tests.spark_support import LocalSpark
from tests.waiting import wait_until

ROWS = 20_000
MOST_QUESTIONS = 25
SHOWN_S = 120  # a Python worker of Spark starts slowly beside other tests
MB = 1 << 20


def test_progress_and_measurements_of_a_run(
    local_spark: LocalSpark,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_runner.driver.progress._LOOK_SECONDS", 0.1)
    monkeypatch.setattr("spark_runner.driver.progress._SAMPLE_SECONDS", 0.5)
    spark = local_spark.other({"spark.executor.heartbeatInterval": "200ms"})
    go, news = tmp_path / "go", []
    context = spark.sparkContext
    watch = SparkMonitor(spark, lambda: news.append(watch.shown()))
    assert watch.shown() == {"application_id": context.applicationId}  # before the first poll
    watch.start()
    numbers = str(tmp_path / "numbers")
    spark.range(ROWS).selectExpr("id", "id % 10 AS k").write.parquet(numbers)
    spark.read.parquet(numbers).groupBy("k").count().write.parquet(str(tmp_path / "counts"))

    wait_until(lambda: watch.shown().get("written", {}).get("rows") == ROWS + 10, SHOWN_S, "rows are shown")
    assert watch.shown()["read"]["rows"] >= ROWS
    assert watch.shown()["read"]["bytes"] > 0

    rdd = context.parallelize(range(3), 3).map(lambda number: _hold(str(go)) if number == 0 else number)
    thread = threading.Thread(target=rdd.count)
    thread.start()
    wait_until(lambda: [s["done"] for s in watch.shown()["stages"]] == [2], SHOWN_S, "a stage is shown")
    load = {"number": 1, "active_tasks": 1, "failed_tasks": 0}
    wait_until(lambda: watch.shown()["executors"] == load, SHOWN_S, "the load of the executors is shown")
    wait_until(lambda: "sample" in watch.shown(), SHOWN_S, "a sample is shown")
    check_sample(watch.shown()["sample"])
    go.touch()
    thread.join()

    with pytest.raises(Exception, match="ZeroDivisionError"):
        context.parallelize([1], 1).map(lambda number: number // 0).count()
    wait_until(lambda: watch.shown()["executors"]["failed_tasks"] == 1, SHOWN_S, "the failed task is shown")

    assert 0 < _questions(spark, monkeypatch) <= MOST_QUESTIONS
    spark.stop()  # as most programs do; the measures were taken just before
    found = watch.finish()
    assert "measured" not in capfd.readouterr().err
    assert len(json.dumps(found)) < MAX_METRICS_BYTES
    assert "partial" not in found
    assert (found["output_rows"], found["tasks_failed"]) == (ROWS + 10, 1)
    assert found["input_rows"] >= ROWS
    assert found["shuffle_write_bytes"] > 0
    assert found["spill_disk_bytes"] == 0
    assert found["skew"]["max_seconds"] > found["skew"]["median_seconds"] > 0
    assert found["cpu_seconds"] > 0
    assert 0 <= found["gc_share"] < 1
    assert found["executors"]["lost"] == 0
    assert found["executors"]["python_rss_peak_bytes"] > MB
    # Spark counts a process that the JVM has just forked as a second JVM; the kernel does not.
    assert found["executors"]["jvm_rss_peak_bytes"] <= found["driver"]["rss_peak_bytes"]
    assert found["driver"]["rss_peak_bytes"] > found["driver"]["heap_peak_bytes"] > 10 * MB
    assert found["driver"]["heap_limit_bytes"] >= found["driver"]["heap_peak_bytes"]
    assert found["driver"]["python_rss_peak_bytes"] > 10 * MB
    assert found["settings"]["spark.master"] == "local[2]"
    assert any(shown["stages"] for shown in news)


def check_sample(shown: dict[str, Any]) -> None:
    assert sample_of({"sample": shown}) == shown
    assert shown["metrics"]["driver"]["rss_peak_bytes"] > 10 * MB
    assert shown["metrics"]["executors"]["number"] == 1
    assert shown["settings"]["spark.master"] == "local[2]"


def _hold(go: str) -> int:
    deadline = time.monotonic() + 30
    while not Path(go).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)  # longer than the others, for the skew
    return 0


def _questions(spark: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """The questions to the JVM of the shortest of ten looks: nothing has changed since the one before."""
    metrics, found = RunMetrics(SparkStatus(spark), pytest.fail), list[int]()
    client, asked = spark.sparkContext._gateway._gateway_client, list[threading.Thread]()  # noqa: SLF001 - what a look costs
    send = client.send_command

    def counted(text: str, *more: Any) -> Any:
        if not text.startswith("m"):  # of the memory of the gateway
            asked.append(threading.current_thread())
        return send(text, *more)

    with monkeypatch.context() as patched:
        patched.setattr(client, "send_command", counted)
        for _ in range(10):
            asked.clear()
            metrics.look()
            found.append(asked.count(threading.current_thread()))  # the monitor looks, too
    return min(found)
