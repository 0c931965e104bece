"""The metrics of a run: sums over its stages, its executors and its driver, small enough for its outcome."""

import os
import time
from collections.abc import Callable
from typing import Any

from spark_runner.proc import rss_peak, stat
from spark_runner.spark_status import SparkStatus, Stage

MAX_METRICS_BYTES = 4096  # in an outcome, which ZooKeeper keeps in memory

_READ_SECONDS = 0.015  # per look, for stages that have ended
_LAST_READ_SECONDS = 3.0  # after the end of the program, for the remaining stages: at most a thousand
_EVENTS_SECONDS = 2.0  # for Spark to process the end of the last tasks


class RunMetrics:
    """Adds up the numbers of ended stages as they end, so that little is left to read at the end.

    Used by one thread. Numbers that Spark does not report are left out, and `complain` gets the reason.
    """

    def __init__(self, status: SparkStatus, complain: Callable[[str], None]) -> None:
        self._status, self._complain = status, complain
        self._started = time.monotonic()
        self._stages = 0
        self._sums: dict[str, int] = {}
        self._heaviest: Stage | None = None
        self._settings: dict[str, str] = {}
        self._executors: dict[str, int] = {}
        self._driver: dict[str, float] = {}
        self._skew: dict[str, float] = {}
        self._complete = False

    def look(self) -> dict[str, Any]:
        """Read what has changed since the last look; returns the progress. Raises errors of py4j."""
        status = self._status
        if not self._settings:
            self._settings = status.settings()
        for stage in status.newly_ended_stages(_READ_SECONDS):
            self._add(stage)
        active = status.active_stages()
        executors = {} if status.is_shared else status.executor_load()

        def so_far(name: str) -> int:
            return self._sums.get(name, 0) + sum(stage.sums[name] for stage in active)

        return {
            "stages": [
                {"stage": stage.number, "tasks": stage.task_count, "done": stage.sums["tasks"]}
                for stage in active
            ],
            "read": {"rows": so_far("input_rows"), "bytes": so_far("input_bytes")},
            "written": {"rows": so_far("output_rows"), "bytes": so_far("output_bytes")},
            "executors": executors,
        }

    def finish(self) -> None:
        """Read the remaining numbers while Spark is still there; raises nothing."""
        status = self._status

        def stages() -> None:
            for stage in [*status.newly_ended_stages(_LAST_READ_SECONDS), *status.active_stages()]:
                self._add(stage)
            completed = status.completed_stages()
            self._complete = completed is None or self._stages >= completed

        self._try("the events of Spark", lambda: status.wait_for_events(_EVENTS_SECONDS))
        self._try("the settings", lambda: self._settings.update(status.settings()))
        self._try("the stages", stages)
        self._try("the task times", self._measure_skew)
        if status.is_shared:
            self._try("the driver", self._measure_python)
        else:
            self._try("the executors", lambda: self._executors.update(status.executors()))
            self._try("the driver", self._measure_driver)

    def document(self) -> dict[str, Any]:
        """The metrics so far in bytes, seconds and rows; at most MAX_METRICS_BYTES as JSON."""
        sums = dict.fromkeys(("task_ms", "cpu_ns", "gc_ms"), 0) | self._sums
        task_ms, cpu_ns, gc_ms = (sums.pop(name) for name in ("task_ms", "cpu_ns", "gc_ms"))
        found: dict[str, Any] = {
            "seconds": round(time.monotonic() - self._started, 3),
            "stages": self._stages,
            **sums,
            "task_seconds": task_ms / 1000,
            "cpu_seconds": round(cpu_ns / 1e9, 3),
            "gc_seconds": gc_ms / 1000,
            "gc_share": round(gc_ms / task_ms, 4) if task_ms else 0.0,
            "skew": self._skew,
            "executors": self._executors,
            "driver": self._driver,
            "settings": self._settings,
        }
        if self._status.is_shared:
            found["shared"] = True
        if not self._complete:  # the driver was killed, or there were more stages than Spark keeps
            found["partial"] = True
        return {name: value for name, value in found.items() if value not in ({}, None)}

    def _add(self, stage: Stage) -> None:
        self._stages += 1
        for name, value in stage.sums.items():
            self._sums[name] = self._sums.get(name, 0) + value
        if self._heaviest is None or stage.sums["task_ms"] > self._heaviest.sums["task_ms"]:
            self._heaviest = stage

    def _measure_skew(self) -> None:
        stage = self._heaviest
        times = None if stage is None else self._status.task_times(stage)
        if stage is not None and times is not None:
            median, longest = times
            self._skew = {
                "stage": stage.number,
                "tasks": stage.task_count,
                "median_seconds": round(median, 3),
                "max_seconds": round(longest, 3),
                "ratio": round(longest / median, 2) if median else 0.0,
            }

    def _measure_python(self) -> None:
        own = os.getpid()
        self._driver = {
            "python_rss_peak_bytes": rss_peak(own),
            "cpu_seconds": round(stat(own).cpu_seconds, 2),
        }

    def _measure_driver(self) -> None:
        jvm, python = self._status.jvm_pid(), os.getpid()
        self._driver = {
            "heap_limit_bytes": self._status.heap_limit(),
            "heap_peak_bytes": self._status.heap_peak(),
            "rss_peak_bytes": rss_peak(jvm),
            "python_rss_peak_bytes": rss_peak(python),
            "cpu_seconds": round(stat(jvm).cpu_seconds + stat(python).cpu_seconds, 2),
        }
        if self._settings.get("spark.master", "").startswith(
            "local"
        ):  # one JVM, and the kernel's figure is exact
            executors, known = self._executors, int(self._driver["rss_peak_bytes"])
            executors["jvm_rss_peak_bytes"] = min(known, executors.get("jvm_rss_peak_bytes", known))

    def _try(self, what: str, measure: Callable[[], object]) -> None:
        try:
            measure()
        except Exception as error:  # noqa: BLE001 - a failed measurement must not fail the job
            self._complain(f"{what} could not be measured: {first_line(error)}")


def first_line(error: Exception) -> str:
    """The first line of an error, without the Java stack behind it."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
