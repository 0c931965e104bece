"""What a run would have needed of each resource, from what it measured: the use that the law follows."""

from orchestrator.tuning.demand import Use
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.signals import Sample, mib, number, number_in
from spark_runner.protocol.sizing import memory_bytes

_CPU_USE = 0.7  # of all cores over the whole run: what the number of executors aims at
_LIVE_HEADROOM = 1.6  # heap for what survives collections: with less the collector runs all the time
_RESERVED = 300.0  # MiB of a heap that Spark's memory manager leaves alone
_MEMORY_FRACTION = 0.6  # spark.memory.fraction
_GARBAGE_SHARE = 0.25  # of a heap that is collected at little cost
_CHEAP_GC = 0.04
_HEARTBEATS_SECONDS = 30.0  # a run that is as long has some; the first comes after 10 to 20 s


def use_of(sample: Sample, resource: Resource) -> Use | None:
    """The use that a run made of a resource; None where that is unknown."""
    allocated = sample.allocated(resource)
    if allocated is None:
        return None
    if resource is sample.short_resource:
        return Use(allocated, allocated, is_short=True, input=sample.input)
    if not sample.is_good:
        return None  # it ended early, and may have needed more later
    peak = _peak(sample, resource, allocated)
    if peak is None:
        return None
    least = min(_managed(sample), allocated) if _is_managed(sample, resource) else 0.0
    return Use(allocated, max(peak, 1.0), least=least, input=sample.input)


def heap_peak(sample: Sample, resource: Resource) -> float | None:
    """The most of a heap that was in use at a time, with garbage; None for other resources."""
    if not resource.is_heap:
        return None
    executor, driver = mib(sample.executor, "heap_peak_bytes"), mib(sample.driver, "heap_peak_bytes")
    if resource.process == "executor":
        return executor and min(executor, sample.allocated(resource) or executor)
    if driver is None:
        return None
    # A driver adds up the peaks of its pools, which are at different times; Spark polls their sum. But in a
    # short run it does so only while tasks run, and not while the driver collects their results.
    if sample.is_local and executor and (sample.seconds or 0.0) >= _HEARTBEATS_SECONDS:
        driver = min(driver, max(executor, mib(sample.driver, "heap_live_peak_bytes") or 0.0))
    return min(driver, sample.allocated(resource) or driver)


def _peak(sample: Sample, resource: Resource, allocated: float) -> float | None:
    match resource:
        case Resource.DRIVER_MEMORY | Resource.EXECUTOR_MEMORY:
            return _heap(sample, resource)
        case Resource.DRIVER_OVERHEAD | Resource.EXECUTOR_OVERHEAD:
            return _overhead(sample, resource)
        case Resource.DRIVER_CORES:
            cpu = number(sample.driver, "cpu_seconds")
            return cpu / sample.seconds / _CPU_USE if cpu is not None and sample.seconds else None
        case Resource.EXECUTOR_CORES if sample.executors > 1:
            return None  # the number of executors follows the same signal
        case _:
            return _parallel(sample, allocated, max(sample.asked_for(resource) or 0.0, allocated))


def _heap(sample: Sample, resource: Resource) -> float | None:
    """The heap for what a program keeps.

    A large heap is collected late, so its peak is mostly garbage. What survives a collection tells more, and
    where only the peak is known, the cost of collections: the less of it, the more of the peak is garbage.
    """
    peak, live = heap_peak(sample, resource), mib(sample.part(resource), "heap_live_peak_bytes")
    if peak is None:
        return None
    is_known = not _is_managed(sample, resource) or mib(sample.executor, "heap_peak_bytes")
    if live is not None and is_known:  # else what Spark's memory manager gave out may be more
        return min(peak, _LIVE_HEADROOM * live)
    share = sample.gc_share
    is_cheap = share is not None and share < _CHEAP_GC
    return peak * (1 - _GARBAGE_SHARE) if is_cheap else peak


def _is_managed(sample: Sample, resource: Resource) -> bool:
    """Whether it is the heap in which Spark's tasks run."""
    return resource.is_heap and (resource.process == "executor" or sample.is_local)


def _managed(sample: Sample) -> float:
    """The heap without which Spark's memory manager could not have given out what it did."""
    given = mib(sample.executor, "managed_peak_bytes")
    if not given:
        return 0.0
    fraction = number_in(sample.conf, "spark.memory.fraction") or _MEMORY_FRACTION
    return given / min(max(fraction, 0.1), 0.95) + _RESERVED


def _overhead(sample: Sample, resource: Resource) -> float | None:
    """The resident memory beside the heap: code, threads and buffers of the JVM, and Python."""
    part = sample.part(resource)
    name = "rss_peak_bytes" if resource.process == "driver" else "jvm_rss_peak_bytes"
    rss, heap = mib(part, name), mib(part, "heap_peak_bytes")
    if rss is None or heap is None:
        return None
    python = mib(part, "python_rss_peak_bytes") or 0.0
    if sample.is_local:  # the Python workers belong to the executor, which is the driver here
        python += mib(sample.executor, "python_rss_peak_bytes") or 0.0
    own = memory_bytes(str(sample.conf.get("spark.executor.pyspark.memory", "")))  # 0 = none of its own
    has_own = resource.process == "executor" and own
    heap = min(heap, sample.allocated(Resource(f"{resource.process}.memory")) or heap)
    return max(0.0, rss - heap) + (0.0 if has_own else python)


def _parallel(sample: Sample, allocated: float, asked: float) -> float | None:
    """The cores or executors that would have been busy for the aimed share of the time.

    Not below what makes the run a tenth longer than with all that was asked for, where its parallel part
    takes all of them. A tenth longer than the last run would be more with each decision.
    """
    executors, cores = number(sample.executor, "number"), number(sample.executor, "cores")
    if executors and (lost := number(sample.executor, "lost")):  # others have replaced them
        executors = max(executors - lost, 1.0)
    if not (executors and cores and sample.seconds and sample.task_seconds is not None):
        return None
    busy = min(sample.task_seconds / (executors * cores * sample.seconds), 1.0)
    if busy <= 0:
        return allocated
    serial = 0.1 * (1 - busy)  # a tenth of it may be added, too
    return max(allocated * busy / _CPU_USE, allocated * busy / (serial + 1.1 * busy * allocated / asked))
