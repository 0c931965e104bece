import json
from collections.abc import Iterator
from typing import Any

from spark_runner.driver.run_metrics import MAX_METRICS_BYTES, RunMetrics
from spark_runner.driver.spark_status import PEAKS, SUMS, Stage
from spark_runner.protocol.sizing import SIZING

HUGE = 2**63 - 1
MB = 1 << 20


class Status:
    """A status store in which every number is as large as it can be."""

    is_shared = False

    def __init__(self, broken: bool = False) -> None:
        self._broken = broken
        self._ended = [Stage(number, 0, 10_000, dict.fromkeys(SUMS, HUGE)) for number in range(3)]

    def settings(self) -> dict[str, str]:
        return dict.fromkeys(SIZING, "x" * 80)

    def wait_for_events(self, _seconds: float) -> None:
        if self._broken:
            raise RuntimeError("no events\nand pages of Java")

    def newly_ended_stages(self, _seconds: float) -> Iterator[Stage]:
        while self._ended:
            yield self._ended.pop()

    def active_stages(self) -> list[Stage]:
        return []

    def completed_stages(self) -> int:
        return 3

    def task_times(self, _stage: Stage) -> tuple[float, float] | None:
        return 0.5, 2.0

    def executor_load(self) -> dict[str, int]:
        return {"number": HUGE, "active_tasks": HUGE, "failed_tasks": HUGE}

    def executors(self) -> dict[str, Any]:
        if self._broken:
            raise RuntimeError("no executors")
        return {
            **dict.fromkeys(("number", "lost", "cores", *PEAKS), HUGE),
            "lost_memory": dict.fromkeys(("heap", "overhead", "container"), HUGE),
        }

    def jvm_pid(self) -> int:
        return 1

    def heap_limit(self) -> int:
        return HUGE

    def heap_peak(self) -> int:
        return HUGE

    def live_heap_peak(self) -> int | None:
        if self._broken:
            raise RuntimeError("no collectors")
        return HUGE


def measured(status: Any) -> tuple[dict[str, Any], list[str]]:
    complaints: list[str] = []
    metrics = RunMetrics(status, complaints.append)
    metrics.look()
    metrics.finish()
    return metrics.document(), complaints


def test_the_largest_measurements_fit_into_an_outcome() -> None:
    document, complaints = measured(Status())
    assert complaints == []
    assert len(json.dumps(document)) < MAX_METRICS_BYTES
    assert document["skew"] == {
        "stage": 2,
        "tasks": 10_000,
        "median_seconds": 0.5,
        "max_seconds": 2.0,
        "ratio": 4.0,
    }
    assert "partial" not in document


def test_a_metric_that_cannot_be_measured_is_omitted_and_reported_and_the_others_are_there() -> None:
    document, complaints = measured(Status(broken=True))
    assert list(dict.fromkeys(complaints)) == [
        "the heap after its collections could not be measured: no collectors",
        "the events of Spark could not be measured: no events",
        "the executors could not be measured: no executors",
    ]
    assert "executors" not in document
    assert "heap_live_peak_bytes" not in document["driver"]
    assert document["input_rows"] == 3 * HUGE


def test_a_jvm_that_was_counted_twice_has_at_most_the_memory_that_it_can_use() -> None:
    status = Status()
    status.settings = lambda: {"spark.executor.memory": "512m"}  # type: ignore[method-assign]
    seen = {"number": 1, "lost": 0, "cores": 1, "off_heap_peak_bytes": 50 * MB}
    for rss, kept in ((300, 300), (1_800, 512 + 384 + 50)):
        status.executors = lambda rss=rss: {**seen, "jvm_rss_peak_bytes": rss * MB}  # type: ignore[method-assign, misc]
        assert measured(status)[0]["executors"]["jvm_rss_peak_bytes"] == kept * MB


def test_a_run_of_which_some_stages_were_not_seen_says_so() -> None:
    status = Status()
    status.completed_stages = lambda: 4  # type: ignore[method-assign]
    document, _ = measured(status)
    assert document["partial"] is True
