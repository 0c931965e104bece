"""The totals of a run over its stages, executors and driver."""

import os
import time
from collections.abc import Callable
from typing import Any

from spark_runner.connectors.read_counts import read_so_far
from spark_runner.driver.python_workers import workers_rss_peak
from spark_runner.driver.spark_status import SparkStatus, Stage
from spark_runner.protocol.proc import rss_peak, stat
from spark_runner.protocol.sizing import is_local_master, plausible_jvm_bytes

MAX_METRICS_BYTES = 4096  # in an outcome, which ZooKeeper keeps in memory

_READ_SECONDS = 0.015  # per look, for stages that have ended
_LAST_READ_SECONDS = 3.0  # after the end of the program, for the remaining stages: at most a thousand
_EVENTS_SECONDS = 2.0  # for Spark to process the end of the last tasks

_SAMPLED = (
    "seconds",
    "input_rows",
    "input_bytes",
    "spill_memory_bytes",
    "spill_disk_bytes",
    "task_seconds",
    "cpu_seconds",
    "gc_share",
    "executors",
    "driver",
)


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
        self._executors: dict[str, Any] = {}
        self._driver: dict[str, float] = {}
        self._skew: dict[str, float] = {}
        self._read_before = read_so_far()
        self._complete = False
        self._memory: dict[str, int] = {}  # peaks that Spark does not keep, and that end with a process
        self._jvm_pid = 0

    def look(self) -> dict[str, Any]:
        """Read what has changed since the last look; returns the progress. Raises errors of py4j."""
        status = self._status
        if not self._settings:
            self._settings = status.settings()
        for stage in status.newly_ended_stages(_READ_SECONDS):
            self._add(stage)
        if not status.is_shared:
            self._measure_memory()
        active = status.active_stages()
        executors = {} if status.is_shared else status.executor_load()
        beside = self._read_beside_spark()

        def so_far(name: str) -> int:
            return self._sums.get(name, 0) + beside.get(name, 0) + sum(stage.sums[name] for stage in active)

        return {
            "stages": [
                {"stage": stage.number, "tasks": stage.task_count, "done": stage.sums["tasks"]}
                for stage in active
            ],
            "read": {"rows": so_far("input_rows"), "bytes": so_far("input_bytes")},
            "written": {"rows": so_far("output_rows"), "bytes": so_far("output_bytes")},
            "executors": executors,
        }

    def _read_beside_spark(self) -> dict[str, int]:
        return {name: value - self._read_before[name] for name, value in read_so_far().items()}

    def finish(self) -> None:
        """Read the remaining numbers while Spark is still there; raises nothing."""
        status = self._status

        def stages() -> None:
            for stage in [*status.newly_ended_stages(_LAST_READ_SECONDS), *status.active_stages()]:
                self._add(stage)
            completed = status.completed_stages()
            self._complete = completed is None or self._stages >= completed

        if not status.is_shared:
            self._measure_memory()  # before the workers end
        self._try("the events of Spark", lambda: status.wait_for_events(_EVENTS_SECONDS))
        self._try("the settings", lambda: self._settings.update(status.settings()))
        self._try("the stages", stages)
        self._try("the task times", self._measure_skew)
        if status.is_shared:
            self._try("the driver", self._measure_python)
        else:
            self._try("the executors", self._measure_executors)
            self._try("the driver", self._measure_driver)

    def sample(self) -> dict[str, Any]:
        """The metrics so far that the size of a long run depends on, and its settings; raises nothing.

        It reads each executor, about 1.5 ms for one.
        """
        if not self._status.is_shared:
            self._try("the executors", self._measure_executors)
            self._try("the driver", self._measure_driver)
        found = self.document()
        metrics = {name: found[name] for name in _SAMPLED if name in found}
        return {"metrics": metrics, "settings": dict(self._settings)}

    def document(self) -> dict[str, Any]:
        """The metrics so far in bytes, seconds and rows; at most MAX_METRICS_BYTES as JSON."""
        sums = dict.fromkeys(("task_ms", "cpu_ns", "gc_ms"), 0) | self._sums
        task_ms, cpu_ns, gc_ms = (sums.pop(name) for name in ("task_ms", "cpu_ns", "gc_ms"))
        for name, value in self._read_beside_spark().items():
            if value:
                sums[name] = sums.get(name, 0) + value
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

    def _measure_memory(self) -> None:
        def heap() -> None:
            if (live := self._status.live_heap_peak()) is not None:
                self._memory["heap_live_peak_bytes"] = live

        def workers() -> None:
            self._jvm_pid = self._jvm_pid or self._status.jvm_pid()
            now, name = workers_rss_peak(self._jvm_pid), "python_rss_peak_bytes"
            self._memory[name] = max(now, self._memory.get(name, 0))

        self._try("the heap after its collections", heap)
        if self._is_local:
            self._try("the Python workers", workers)

    @property
    def _is_local(self) -> bool:
        return is_local_master(self._settings.get("spark.master", ""))

    def _measure_executors(self) -> None:
        self._executors = found = self._status.executors()
        # A process that the JVM has just forked may count as a second JVM.
        most = plausible_jvm_bytes(self._settings) + found.get("off_heap_peak_bytes", 0)
        if found.get("jvm_rss_peak_bytes", 0) > most:
            found["jvm_rss_peak_bytes"] = most

    def _measure_driver(self) -> None:
        jvm, python = self._status.jvm_pid(), os.getpid()
        self._driver = {
            "heap_limit_bytes": self._status.heap_limit(),
            "heap_peak_bytes": self._status.heap_peak(),
            "rss_peak_bytes": rss_peak(jvm),
            "python_rss_peak_bytes": rss_peak(python),
            "cpu_seconds": round(stat(jvm).cpu_seconds + stat(python).cpu_seconds, 2),
        }
        live = {name: value for name, value in self._memory.items() if name == "heap_live_peak_bytes"}
        self._driver |= live
        if self._is_local:  # one JVM; Spark counts the driver's Python as that of tasks
            self._executors |= {"jvm_rss_peak_bytes": int(self._driver["rss_peak_bytes"]), **self._memory}
            if not self._executors.get("python_rss_peak_bytes"):
                self._executors.pop("python_rss_peak_bytes", None)

    def _try(self, what: str, measure: Callable[[], object]) -> None:
        try:
            measure()
        except Exception as error:  # noqa: BLE001 - a failed measurement must not fail the job
            self._complain(f"{what} could not be measured: {first_line(error)}")


def first_line(error: Exception) -> str:
    """The first line of an error, without the Java stack behind it."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
