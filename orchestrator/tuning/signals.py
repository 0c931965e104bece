"""What past runs tell about each resource: entries of the history, checked, as uses of the law.

Drivers write their own measurements, and earlier versions wrote other entries: what is missing or out of
range counts as unknown, and leaves its resource alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.tuning.demand import Use
from orchestrator.tuning.resources import MIB, Resource, tasks_at_a_time
from spark_runner.protocol.sizing import RESOURCES, is_local_master, memory_bytes

Run = Mapping[str, Any]

GC_SHARE = 0.08  # of the time of tasks: beyond it a heap counts as small
CPU_USE = 0.7  # of all cores over the whole run: what the number of executors aims at

STATED_INPUT = "input"  # by the definition, which also knows that of the next run
_INPUTS = ("input_rows", "input_bytes")  # some sources count no bytes, all count rows
USUALLY_SHORT = "executor.heap"  # where a run was out of memory, and nothing says of which
_LIVE_HEADROOM = 1.6  # heap for what survives collections: with less the collector runs all the time
_RESERVED = 300.0  # MiB of a heap that Spark's memory manager leaves alone
_MEMORY_FRACTION = 0.6  # spark.memory.fraction
_GARBAGE_SHARE = 0.25  # of a heap that is collected at little cost
_CHEAP_GC = 0.04
_HEARTBEATS_SECONDS = 30.0  # a run that is as long has some; the first comes after 10 to 20 s
_TELLING_GC_SECONDS = 1.0  # the first collections of a JVM are a tenth of the time of tasks that take 0.2 s
_LARGEST = 2.0**50
_SMALLEST = 1e-9  # smaller ones divide to infinity


@dataclass(frozen=True, slots=True)
class Sample:
    """One run as the tuner sees it; sizes in MiB, times in seconds, None = unknown.

    `inputs`: the size of what it read, by what measured it; `input`: the one that runs are compared by.
    """

    run: str
    state: str
    conf: Mapping[str, object]
    metrics: Run
    job: str = ""
    short_of: str | None = None
    inputs: Mapping[str, float] = field(default_factory=dict)
    input: float | None = None
    seconds: float | None = None
    lost: Mapping[str, object] = field(default_factory=dict)
    asked: Mapping[str, object] | None = None  # by definition and pool; None = unknown

    @classmethod
    def of(cls, run: Run) -> "Sample":
        """The sample of an entry of the history."""
        metrics = _part(run, "metrics")
        sizes = {STATED_INPUT: _number(run, "input")} | {name: _number(metrics, name) for name in _INPUTS}
        inputs = {name: size for name, size in sizes.items() if size}
        return cls(
            run=str(run.get("run")),
            state=str(run.get("state")),
            conf=_part(run, "settings"),
            metrics=metrics,
            job=job if isinstance(job := run.get("job"), str) else "",
            short_of=_short_of(run),
            inputs=inputs,
            input=next(iter(inputs.values()), None),
            seconds=_number(metrics, "seconds") or _number(run, "seconds") or None,
            lost=_part(_part(metrics, "executors"), "lost_memory"),
            asked=_part(run, "asked") if isinstance(run.get("asked"), Mapping) else None,
        )

    @property
    def is_good(self) -> bool:
        """Whether it did its work; an hour of a running stream did."""
        return self.state in {"succeeded", "running"}

    @property
    def is_local(self) -> bool:
        """Whether the driver is the executor."""
        return is_local(self.conf)

    @property
    def executors(self) -> float:
        """The number of its executors; 0 where the driver is the only one, and where it is unknown."""
        return 0.0 if self.is_local else _number(_part(self.metrics, "executors"), "number") or 0.0

    @property
    def gc_share(self) -> float | None:
        """Time of garbage collection, as a share of the time of tasks."""
        return _number(self.metrics, "gc_share")

    @property
    def gc_pressure(self) -> float:
        """The same, 0 where it is unknown, and where collections took too little time to tell anything."""
        share, seconds = self.gc_share or 0.0, self.task_seconds
        return share if seconds is None or share * seconds >= _TELLING_GC_SECONDS else 0.0

    @property
    def spilled(self) -> float | None:
        """Bytes that tasks wrote to disk for want of memory."""
        return _number(self.metrics, "spill_disk_bytes")

    @property
    def cpu_seconds(self) -> float | None:
        """Processor time of all tasks in their JVMs, without garbage collection."""
        return _number(self.metrics, "cpu_seconds")

    @property
    def task_seconds(self) -> float | None:
        """Time of all tasks."""
        return _number(self.metrics, "task_seconds")

    def allocated(self, resource: Resource) -> float | None:
        """What the run really had; None where Spark decided it, or where there is no such process."""
        return None if is_open(resource, self.conf) else resource.value_in(self.conf)

    def asked_for(self, resource: Resource) -> float | None:
        """What definition and pool asked for; None if that is unknown."""
        conf = self._asked_conf
        return None if conf is None else resource.value_in(conf)

    @property
    def asked_tasks(self) -> float | None:
        """The tasks that each process was to run at a time; None if unknown."""
        conf = self._asked_conf
        return None if conf is None else tasks_at_a_time(conf)

    @property
    def _asked_conf(self) -> Mapping[str, object] | None:
        if self.asked is None:
            return None
        others = {name: text for name, text in self.conf.items() if name not in RESOURCES}
        return {**others, **self.asked}  # defaults depend on the master, too

    def heap_peak(self, resource: Resource) -> float | None:
        """The most of a heap that was in use at a time, with garbage; None for other resources."""
        if not resource.is_heap:
            return None
        executors = _mib(_part(self.metrics, "executors"), "heap_peak_bytes")
        if resource.process == "executor":
            return executors and min(executors, self.allocated(resource) or executors)
        driver = _mib(_part(self.metrics, "driver"), "heap_peak_bytes")
        if driver is None:
            return None
        # A driver adds up the peaks of its pools, which are at different times; Spark polls their sum. But in
        # a short run it does so only while tasks run, and not while the driver collects their results.
        if self.is_local and executors and (self.seconds or 0.0) >= _HEARTBEATS_SECONDS:
            driver = min(
                driver, max(executors, _mib(_part(self.metrics, "driver"), "heap_live_peak_bytes") or 0.0)
            )
        return min(driver, self.allocated(resource) or driver)

    def use(self, resource: Resource) -> Use | None:
        """Its use of a resource; None where that is unknown."""
        allocated = self.allocated(resource)
        if allocated is None:
            return None
        if resource is self._short_resource():
            return Use(allocated, allocated, is_short=True, input=self.input)
        if not self.is_good:
            return None  # it ended early, and may have needed more later
        peak = self._peak(resource, allocated)
        return None if peak is None else Use(allocated, max(peak, 1.0), input=self.input)

    def _short_resource(self) -> Resource | None:
        """The resource for want of which it failed, or lost executors."""
        lost = next((f"executor.{what}" for what in ("heap", "container") if _number(self.lost, what)), None)
        return resource_of(self.short_of or lost, is_local=self.is_local)

    def _peak(self, resource: Resource, allocated: float) -> float | None:
        part = _part(self.metrics, "driver" if resource.process == "driver" else "executors")
        match resource:
            case Resource.DRIVER_MEMORY | Resource.EXECUTOR_MEMORY:
                return self._heap(resource, part)
            case Resource.DRIVER_OVERHEAD | Resource.EXECUTOR_OVERHEAD:
                return self._overhead(resource, part)
            case Resource.DRIVER_CORES:
                cpu = _number(part, "cpu_seconds")
                return cpu / self.seconds / CPU_USE if cpu is not None and self.seconds else None
            case Resource.EXECUTOR_CORES if self.executors > 1:
                return None  # the number of executors follows the same signal
            case _:
                return self._parallel(allocated, max(self.asked_for(resource) or 0.0, allocated))

    def _heap(self, resource: Resource, part: Run) -> float | None:
        """The heap that a run would have needed.

        A large heap is collected late, so its peak is mostly garbage. What survives a collection tells more,
        and where only the peak is known, the cost of collections: the less of it, the more of the peak is
        garbage. What Spark's memory manager gave out has to fit in any case.
        """
        peak = self.heap_peak(resource)
        if peak is None:
            return None
        managed = _part(self.metrics, "executors") if self.is_local else part
        given = (_mib(managed, "execution_peak_bytes") or 0.0) + (_mib(managed, "storage_peak_bytes") or 0.0)
        fraction = _plausible(_parsed(self.conf.get("spark.memory.fraction"))) or _MEMORY_FRACTION
        least = given / min(max(fraction, 0.1), 0.95) + _RESERVED if given else 0.0
        live = _mib(part, "heap_live_peak_bytes")
        if live is not None and _mib(managed, "heap_peak_bytes"):  # else what the manager gave out is unknown
            return min(peak, max(_LIVE_HEADROOM * live, least))
        share = self.gc_share
        is_cheap = share is not None and share < _CHEAP_GC
        return min(peak, max(peak * (1 - _GARBAGE_SHARE) if is_cheap else peak, least))

    def _overhead(self, resource: Resource, part: Run) -> float | None:
        """The resident memory beside the heap: code, threads and buffers of the JVM, and Python."""
        name = "rss_peak_bytes" if resource.process == "driver" else "jvm_rss_peak_bytes"
        rss, heap = _mib(part, name), _mib(part, "heap_peak_bytes")
        if rss is None or heap is None:
            return None
        python = _mib(part, "python_rss_peak_bytes") or 0.0
        if self.is_local:  # the Python workers belong to the executor, which is the driver here
            python += _mib(_part(self.metrics, "executors"), "python_rss_peak_bytes") or 0.0
        own = memory_bytes(str(self.conf.get("spark.executor.pyspark.memory", "")))  # 0 = none of its own
        has_own = resource.process == "executor" and own
        heap = min(heap, self.allocated(Resource(f"{resource.process}.memory")) or heap)
        return max(0.0, rss - heap) + (0.0 if has_own else python)

    def _parallel(self, allocated: float, asked: float) -> float | None:
        """The cores or executors that would have been busy for the aimed share of the time.

        Not below what makes the run a tenth longer than with all that was asked for, where its parallel part
        takes all of them. A tenth longer than the last run would be more with each decision.
        """
        executors = _part(self.metrics, "executors")
        number, cores = _number(executors, "number"), _number(executors, "cores")
        if number and (lost := _number(executors, "lost")):  # others have replaced them
            number = max(number - lost, 1.0)
        if not (number and cores and self.seconds and self.task_seconds is not None):
            return None
        busy = min(self.task_seconds / (number * cores * self.seconds), 1.0)
        if busy <= 0:
            return allocated
        longer = (
            0.1 * (1 - busy) + 1.1 * busy * allocated / asked
        )  # than the serial part, by the time of the run
        return max(allocated * busy / CPU_USE, allocated * busy / longer)


def is_local(conf: Mapping[str, object]) -> bool:
    """Whether the driver is the executor."""
    return is_local_master(str(conf.get("spark.master", "local")))


def is_open(resource: Resource, conf: Mapping[str, object]) -> bool:
    """Whether such a run has no process for it, or Spark chooses it while it runs."""
    if is_local(conf):
        return resource not in {Resource.DRIVER_MEMORY, Resource.DRIVER_OVERHEAD}
    is_dynamic = conf.get("spark.dynamicAllocation.enabled") == "true"
    return is_dynamic and resource is Resource.EXECUTOR_INSTANCES


def _short_of(run: Run) -> str | None:
    found = run.get("short_of")
    if isinstance(found, str):
        return found
    return USUALLY_SHORT if run.get("class") == "memory" else None


def resource_of(short_of: str | None, *, is_local: bool) -> Resource | None:
    """The resource to raise after a run was short of memory, by `short_of` of its error.

    A container is killed for what is beside the heap, which cannot outgrow its own limit.
    """
    process, _, what = (short_of or "").partition(".")
    if process not in {"driver", "executor"} or what not in {"heap", "overhead", "container"}:
        return None
    process = "driver" if is_local else process
    return Resource(f"{process}.{'memory' if what == 'heap' else 'overhead'}")


def _part(document: Run, name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, Mapping) else {}


def _parsed(text: object) -> float | None:
    try:
        return float(str(text)) if text is not None else None
    except ValueError:
        return None


def _number(document: Run, name: str) -> float | None:
    """A number that a driver reports; None without a plausible one."""
    return _plausible(document.get(name))


def _plausible(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < _LARGEST:  # also for NaN
        return None
    return float(value) if value >= _SMALLEST else 0.0


def _mib(document: Run, name: str) -> float | None:
    found = _number(document, name)
    return None if not found else found / MIB
