"""Reads Spark's status store, which exists even without the UI.

All reads go through py4j at about 0.1 ms a call. A listener in Python would block Spark's event queue at
each event, and Spark's own JSON needs two seconds of class loading before the first answer.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.driver.live_heap import LiveHeap
from spark_runner.protocol.shortages import shortage
from spark_runner.protocol.sizing import MAX_VALUE_CHARACTERS, SIZING

_MAX_ACTIVE_STAGES = 10  # shown at once; Spark's own UI shows more
_MAX_EXECUTORS = 500  # read at once: each takes several calls
_MAX_TASKS_FOR_SKEW = 20_000  # the store sorts them for each quantile of each of its measures
_BY_DYNAMIC_ALLOCATION = "killed by driver"  # Spark's reason for the removal of an idle executor

# Names of the metrics that are summed over stages, and Spark's names for them.
SUMS = {
    "input_rows": "inputRecords",
    "input_bytes": "inputBytes",
    "output_rows": "outputRecords",
    "output_bytes": "outputBytes",
    "shuffle_read_bytes": "shuffleReadBytes",
    "shuffle_write_bytes": "shuffleWriteBytes",
    "spill_memory_bytes": "memoryBytesSpilled",
    "spill_disk_bytes": "diskBytesSpilled",
    "tasks": "numCompleteTasks",
    "tasks_failed": "numFailedTasks",
    "tasks_killed": "numKilledTasks",
    "task_ms": "executorRunTime",
    "gc_ms": "jvmGcTime",
    "cpu_ns": "executorCpuTime",
}
PEAKS = {
    "heap_peak_bytes": ("JVMHeapMemory",),
    "off_heap_peak_bytes": ("JVMOffHeapMemory",),
    "execution_peak_bytes": ("OnHeapExecutionMemory", "OffHeapExecutionMemory"),
    "storage_peak_bytes": ("OnHeapStorageMemory", "OffHeapStorageMemory"),
    "managed_peak_bytes": ("OnHeapUnifiedMemory",),  # of both at a time, in the heap
    # Available only with spark.executor.processTreeMetrics.enabled. A process that the JVM has just forked
    # counts as a second JVM, so the first figure is sometimes doubled (observed on a busy machine).
    # RunMetrics bounds it.
    "jvm_rss_peak_bytes": ("ProcessTreeJVMRSSMemory",),
    "python_rss_peak_bytes": ("ProcessTreePythonRSSMemory",),
    "other_rss_peak_bytes": ("ProcessTreeOtherRSSMemory",),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """One attempt of a stage, with its metrics so far by the names of `SUMS`."""

    number: int
    attempt: int
    task_count: int
    sums: Mapping[str, int]


class SparkStatus:
    """Reads the status store of one session; used by one thread. Raises errors of py4j.

    With a `job_group` it reads only the stages of that group, because other drivers share the Spark.
    """

    def __init__(self, spark: SparkSession, job_group: str | None = None) -> None:
        context: Any = spark.sparkContext
        self._context = context
        self._jvm = context._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
        self._scala = context._jsc.sc()  # noqa: SLF001 - likewise
        self._store = self._scala.statusStore()
        self._stage_kind = self._jvm.org.apache.spark.status.StageDataWrapper._java_lang_class  # noqa: SLF001 - of py4j
        since = context.startTime if job_group is None else time.time() * 1000
        self._since = int(since)  # epoch ms; also: an int above 31 bits is a Long for py4j
        self._job_group = job_group
        self._stages_of_job: dict[int, frozenset[int]] = {}
        self._seen: set[tuple[int, int]] = set()
        self._live_heap: LiveHeap | None = None

    @property
    def is_shared(self) -> bool:
        """Whether other drivers share the Spark."""
        return self._job_group is not None

    def settings(self) -> dict[str, str]:
        """The effective settings that determine the resources of the run."""
        conf = self._context.getConf()
        found = {name: conf.get(name) for name in SIZING}
        return {name: value[:MAX_VALUE_CHARACTERS] for name, value in found.items() if value}

    def wait_for_events(self, seconds: float) -> None:
        """Wait until Spark has processed all events so far; raises an error of py4j after `seconds`."""
        self._scala.listenerBus().waitUntilEmpty(int(seconds * 1000))

    # ------------------------------------------------------------------ stages
    def active_stages(self) -> list[Stage]:
        """The first ten of the active stages."""
        found, own = self._store.activeStages(), self._own_stages()
        stages = [
            _stage(data)
            for data in (found.apply(index) for index in range(min(found.size(), _MAX_ACTIVE_STAGES)))
            if own is None or data.stageId() in own
        ]
        return sorted(stages, key=lambda stage: (stage.number, stage.attempt))

    def newly_ended_stages(self, seconds: float) -> Iterator[Stage]:
        """The stages that have ended since the last call, as many as can be read in this time.

        Spark keeps the last 1,000 (`spark.ui.retainedStages`); earlier ones are lost.
        """
        deadline, own = time.monotonic() + seconds, self._own_stages()
        # A view that was created before any stage existed stays empty, so each call creates one.
        by_end = self._store.store().view(self._stage_kind).index("completionTime")
        ended = by_end.first(self._since).iterator()
        while time.monotonic() < deadline and ended.hasNext():
            data = ended.next().info()
            key = (data.stageId(), data.attemptId())
            if key in self._seen:
                continue
            end = int(data.completionTime().get().getTime())
            self._since = max(
                self._since, end
            )  # stages of this millisecond are returned again, earlier ones are not
            self._seen.add(key)
            if own is None or key[0] in own:
                yield _stage(data)

    def _own_stages(self) -> frozenset[int] | None:
        """The stages of this job group, current and past; None for all stages."""
        if self._job_group is None:
            return None
        tracker, known = self._scala.statusTracker(), self._stages_of_job
        for job in tracker.getJobIdsForGroup(self._job_group):
            if job not in known and (info := tracker.getJobInfo(job)).isDefined():
                known[job] = frozenset(info.get().stageIds())
        return frozenset().union(*known.values())

    def completed_stages(self) -> int | None:
        """The number of completed stages, including those that Spark has dropped; None if shared."""
        if self.is_shared:
            return None
        return int(self._store.appSummary().numCompletedStages())

    def task_times(self, stage: Stage) -> tuple[float, float] | None:
        """Median and maximum of the task times of a stage in seconds; None where Spark has none."""
        if stage.task_count > _MAX_TASKS_FOR_SKEW:
            return None
        quantiles = self._context._gateway.new_array(self._jvm.double, 2)  # noqa: SLF001 - as above
        quantiles[0], quantiles[1] = 0.5, 1.0
        found = self._store.taskSummary(stage.number, stage.attempt, quantiles)
        if not found.isDefined():
            return None
        times = found.get().duration()
        return times.apply(0) / 1000, times.apply(1) / 1000

    # ------------------------------------------------------------------ executors
    def executor_load(self) -> dict[str, int]:
        """The number of executors, and of their active and failed tasks."""
        found = self._store.executorList(True)
        size = found.size()
        executors = [found.apply(index) for index in range(min(size, _MAX_EXECUTORS))]
        working = [
            executor for executor in executors if executor.totalCores()
        ]  # excludes a driver without tasks
        return {
            "number": len(working) + size - len(executors),
            "active_tasks": sum(executor.activeTasks() for executor in working),
            "failed_tasks": sum(executor.failedTasks() for executor in working),
        }

    def executors(self) -> dict[str, Any]:
        """The peaks of the executors (the maximum over all of them), and the number that were lost.

        `lost_memory` counts those that ended for lack of memory, by what was short: `heap`, `container`.
        With a local master the driver is the executor.
        """
        found = self._store.executorList(False)
        facts: dict[str, Any] = {"number": 0, "lost": 0, "cores": 0, **dict.fromkeys(PEAKS, 0)}
        short = Counter[str]()
        for index in range(min(found.size(), _MAX_EXECUTORS)):
            executor = found.apply(index)
            if not executor.totalCores():
                continue
            facts["number"] += 1
            facts["cores"] = max(facts["cores"], executor.totalCores())
            if not executor.isActive():
                reason = executor.removeReason()
                expected = reason.isDefined() and _BY_DYNAMIC_ALLOCATION in reason.get()
                facts["lost"] += not expected
                if not expected and reason.isDefined() and (words := shortage(reason.get())):
                    short[words.partition(".")[2]] += 1
            peaks = executor.peakMemoryMetrics()
            if peaks.isDefined():
                for name, metrics in PEAKS.items():
                    facts[name] = max(facts[name], sum(peaks.get().getMetricValue(it) for it in metrics))
        facts["lost_memory"] = dict(short)
        return {name: value for name, value in facts.items() if value or name in {"number", "lost", "cores"}}

    # ------------------------------------------------------------------ driver
    def jvm_pid(self) -> int:
        """The process id of the driver's JVM."""
        return int(self._jvm.java.lang.ProcessHandle.current().pid())

    def heap_limit(self) -> int:
        """The maximum heap of the driver in bytes."""
        return int(self._jvm.java.lang.Runtime.getRuntime().maxMemory())

    def live_heap_peak(self) -> int | None:
        """The largest heap of the driver after a collection so far, in bytes; None before the first."""
        if self._live_heap is None:
            self._live_heap = LiveHeap(self._jvm)
        return self._live_heap.peak()

    def heap_peak(self) -> int:
        """The peak heap of the driver in bytes: the sum of the peaks of its pools, an upper bound."""
        beans = self._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        return sum(bean.getPeakUsage().getUsed() for bean in beans if bean.getType().name() == "HEAP")


def _stage(data: Any) -> Stage:
    sums = {name: int(getattr(data, getter)()) for name, getter in SUMS.items()}
    return Stage(int(data.stageId()), int(data.attemptId()), int(data.numTasks()), sums)
