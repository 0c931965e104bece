"""What forbids to lower an allocation: runs that failed, and runs that a smaller allocation made worse."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from orchestrator.tuning.demand import Use
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.samples import Measured
from orchestrator.tuning.signals import GC_SHARE, Sample

_LAST_RUNS = 3
_MORE = 1.1  # times the allocation of a run: others with so much are compared with it
_SLOWER = 1.15  # times their duration
_HOPELESS_GC = 0.2  # of the time of tasks: a heap is too small, whatever other runs had
_MORE_GC = 1.5
_LIKE = 1.2  # inputs are alike within this factor


def held(resource: Resource, samples: Sequence[Sample]) -> str:
    """Why it must not be lowered after these runs, newest last, in words; empty if it may."""
    bad = [sample for sample in samples[-_LAST_RUNS:] if not sample.is_good]
    if bad:
        return f"of the last {len(samples[-_LAST_RUNS:])} runs {len(bad)} did not succeed"
    last = samples[-1]
    if _is_heap(resource) and last.gc_pressure > GC_SHARE:
        return f"garbage collection took {last.gc_pressure:.0%} of the last run"
    if _is_heap(resource) and last.spilled:
        return "the last run spilled to disk"
    return ""


def with_pressure(resource: Resource, measured: Measured) -> list[Use]:
    """The uses; those of runs that suffered from their allocation, as runs with more did not, are pressed.

    One run that spills or collects garbage is enough. A longer duration has to be seen twice: durations vary.
    """
    found, was_slow = list[Use](), False
    for sample, use in measured:
        more = [
            other
            for other, its in measured
            if its.allocated >= _MORE * use.allocated and other.is_good and not its.is_short
        ]
        is_slow = sample.is_good and not resource.is_overhead and _is_slower(resource, sample, more)
        is_pressed = (is_slow and was_slow) or (_is_heap(resource) and _lacks_heap(sample, more))
        found.append(replace(use, is_pressed=is_pressed and not use.is_short))
        was_slow = is_slow
    return found


def _is_heap(resource: Resource) -> bool:
    return resource.is_memory and not resource.is_overhead


def _lacks_heap(sample: Sample, more: Sequence[Sample]) -> bool:
    share = sample.gc_pressure
    if not more:
        return share > _HOPELESS_GC
    usual = median(other.gc_pressure for other in more)
    spills = bool(sample.spilled) and median(other.spilled or 0.0 for other in more) == 0
    return spills or share > max(GC_SHARE, _MORE_GC * usual)


def _is_slower(resource: Resource, sample: Sample, more: Sequence[Sample]) -> bool:
    """Whether it took longer than runs that read as much with more.

    Too little heap costs processor time, for rows that are read or computed again; unlike the duration, that
    does not depend on what else the hosts did. Fewer executors cost no more of it, only time.
    """
    times = [_time(resource, other) for other in more if _reads_like(sample, other)]
    known, own = [time for time in times if time], _time(resource, sample)
    return len(known) > 1 and own is not None and own > _SLOWER * median(known)


def _time(resource: Resource, sample: Sample) -> float | None:
    return sample.cpu_seconds if resource.is_memory else sample.seconds


def _reads_like(one: Sample, other: Sample) -> bool:
    if not one.input or not other.input:
        return one.input == other.input
    return max(one.input, other.input) <= _LIKE * min(one.input, other.input)
