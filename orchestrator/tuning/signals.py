"""What past runs measured: entries of the history, checked.

Drivers write their own measurements, and earlier versions wrote other entries: what is missing or out of
range counts as unknown, and leaves its resource alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.tuning.resources import MIB, Resource, tasks_at_a_time
from spark_runner.protocol.sizing import RESOURCES, is_local_master

Run = Mapping[str, Any]

GC_SHARE = 0.08  # of the time of tasks: beyond it a heap counts as small
STATED_INPUT = "input"  # by the definition, which also knows that of the next run
_INPUTS = ("input_rows", "input_bytes")  # some sources count no bytes, all count rows
USUALLY_SHORT = "executor.heap"  # where a run was out of memory, and nothing says of which
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
        sizes = {STATED_INPUT: number(run, "input")} | {name: number(metrics, name) for name in _INPUTS}
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
            seconds=number(metrics, "seconds") or number(run, "seconds") or None,
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
        return 0.0 if self.is_local else number(self.executor, "number") or 0.0

    @property
    def gc_share(self) -> float | None:
        """Time of garbage collection, as a share of the time of tasks."""
        return number(self.metrics, "gc_share")

    @property
    def gc_pressure(self) -> float:
        """The same, 0 where it is unknown, and where collections took too little time to tell anything."""
        share, seconds = self.gc_share or 0.0, self.task_seconds
        return share if seconds is None or share * seconds >= _TELLING_GC_SECONDS else 0.0

    @property
    def spilled(self) -> float | None:
        """Bytes that tasks wrote to disk for want of memory."""
        return number(self.metrics, "spill_disk_bytes")

    @property
    def cpu_seconds(self) -> float | None:
        """Processor time of all tasks in their JVMs, without garbage collection."""
        return number(self.metrics, "cpu_seconds")

    @property
    def task_seconds(self) -> float | None:
        """Time of all tasks."""
        return number(self.metrics, "task_seconds")

    def part(self, resource: Resource) -> Mapping[str, Any]:
        """What was measured of the process of a resource."""
        return self.driver if resource.process == "driver" else self.executor

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

    @property
    def short_resource(self) -> Resource | None:
        """The resource for want of which it failed, or lost executors."""
        lost = next((f"executor.{what}" for what in ("heap", "container") if number(self.lost, what)), None)
        return resource_of(self.short_of or lost, is_local=self.is_local)

    @property
    def driver(self) -> Mapping[str, Any]:
        """What was measured of the driver."""
        return _part(self.metrics, "driver")

    @property
    def executor(self) -> Mapping[str, Any]:
        """What was measured of executors: the largest figures over all of them."""
        return _part(self.metrics, "executors")


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


def number_in(conf: Mapping[str, object], name: str) -> float | None:
    """A number among Spark properties; None without a plausible one."""
    try:
        return _plausible(float(str(conf[name]))) if name in conf else None
    except ValueError:
        return None


def number(document: Run, name: str) -> float | None:
    """A number that a driver reports; None without a plausible one."""
    return _plausible(document.get(name))


def _plausible(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < _LARGEST:  # also for NaN
        return None
    return float(value) if value >= _SMALLEST else 0.0


def mib(document: Run, name: str) -> float | None:
    """An amount of memory that a driver reports in bytes; None without one, and for 0."""
    found = number(document, name)
    return None if not found else found / MIB
