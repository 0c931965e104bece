"""What forbids to change an allocation: runs that failed, that less made worse, or that more did not help."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from orchestrator.config.tuning import Gains
from orchestrator.tuning.demand import LIKE_HEAP, SHORT_FACTOR, Use
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.samples import Measured
from orchestrator.tuning.signals import GC_SHARE, Sample, mib

_LAST_RUNS = 3
_MORE = 1.1  # times the allocation of a run: others with so much are compared with it
_SLOWER = 1.15  # times their duration
_HOPELESS_GC = 0.2  # of the time of tasks: a heap is too small, even if no run had more
_SAME_GC = 1.2  # shares are the same within this factor
_MORE_GC = 1.5
_OFTEN = 1 / 3  # of the runs that are alike: shares of collections vary
_LIKE = 1.2  # inputs are alike within this factor


def held(resource: Resource, samples: Sequence[Sample]) -> str:
    """Why it must not be lowered after these runs, newest last, in words; empty if it may."""
    bad = [sample for sample in samples[-_LAST_RUNS:] if not sample.is_good]
    if bad:
        return f"of the last {len(samples[-_LAST_RUNS:])} runs {len(bad)} did not succeed"
    last = samples[-1]
    if resource.is_heap and last.gc_pressure > GC_SHARE:
        return f"garbage collection took {last.gc_pressure:.0%} of the last run"
    if resource.is_heap and last.spilled:
        return "the last run spilled to disk"
    return ""


def growth_held(resource: Resource, measured: Measured, gains: Gains, next_input: float | None = None) -> str:
    """Why more of it would not help after these runs, in words; empty if it may grow.

    What survives a collection of young objects has garbage among it, now and then much of it. So a heap with
    such a figure has room if its garbage is collected at little cost. And some programs fill any heap with
    garbage: with more of it, peak and collections have the same share as before.
    """
    sample, use = measured[-1]
    if use.is_short or use.is_pressed or not resource.is_heap:
        return ""
    if sample.gc_pressure <= GC_SHARE:
        is_known = sample.gc_share is not None and mib(sample.part(resource), "heap_live_peak_bytes")
        has_room = is_known and not sample.spilled
        grows = next_input is not None and (not sample.input or next_input > sample.input)
        needed = max(
            its.least for _, its in measured[-gains.hold :] if its.allocated <= LIKE_HEAP * use.allocated
        )
        fits = math.exp(gains.least_margin) * needed <= use.allocated
        return "its garbage was collected at little cost" if has_room and fits and not grows else ""
    if _is_in_vain(sample, _with_less(sample, use, measured)):
        return "runs with less collected no more garbage"
    return ""


def judged(resource: Resource, measured: Measured) -> list[tuple[Sample, Use]]:
    """The runs with their uses; those that suffered, as runs with more did not, are pressed.

    One run that spills is enough, or that does little but collect garbage. More collections than usual have
    to be seen twice, and in a third of the runs that are alike, as their share varies. A longer duration has
    to be seen twice, and no earlier run with as little may have been faster: then the program itself has
    become slower.
    """
    measured = _with_misses(measured) if resource.is_heap else measured
    found, was_slow, fast = list[tuple[Sample, Use]](), False, list[tuple[Sample, Use]]()
    lacking = _lacking_heap(measured) if resource.is_heap else [False] * len(measured)
    for (sample, use), lacks_heap in zip(measured, lacking, strict=True):
        more = _with_more(use, measured)
        is_slow = sample.is_good and not resource.is_overhead and _is_slower(resource, sample, more)
        if is_slow and any(its.allocated <= use.allocated and _reads_like(sample, it) for it, its in fast):
            is_slow = False
        is_pressed = (is_slow and was_slow) or lacks_heap
        found.append((sample, replace(use, is_pressed=is_pressed and not use.is_short)))
        was_slow = is_slow
        if more and sample.is_good and not is_slow:
            fast.append((sample, use))
    return found


def _with_misses(measured: Measured) -> Measured:
    """The runs, of which none seems to have needed less than what such a run was short of.

    The next attempt of a job that was out of memory may measure less than what the job had then: the peak was
    too short to be seen. So it was in other runs that read as much.
    """
    missed = [
        (sample, SHORT_FACTOR * short.allocated)
        for (before, short), (sample, use) in pairwise(measured)
        if short.is_short
        and sample.is_good
        and sample.job
        and sample.job == before.job
        and use.peak < short.allocated
    ]
    found = list[tuple[Sample, Use]]()
    for sample, use in measured:
        needed = max((need for other, need in missed if _reads_like(sample, other)), default=0.0)
        found.append((sample, replace(use, peak=max(use.peak, min(needed, use.allocated)))))
    return found


def _with_more(use: Use, measured: Measured) -> list[Sample]:
    """Runs that others with less are compared with."""
    return [
        other
        for other, its in measured
        if its.allocated >= _MORE * use.allocated and other.is_good and not its.is_short
    ]


def _with_less(sample: Sample, use: Use, measured: Measured) -> list[Sample]:
    """Runs with clearly less that read as much."""
    return [
        other
        for other, its in measured
        if _MORE * its.allocated <= use.allocated
        and other.is_good
        and not its.is_short
        and _reads_like(sample, other)
    ]


def _lacking_heap(measured: Measured) -> list[bool]:
    """Of each run, whether its heap was too small by its collections, or by what it spilled."""
    compared = [(_with_more(use, measured), _with_less(sample, use, measured)) for sample, use in measured]
    strained = [
        _collects_more(sample, more, less)
        for (sample, _), (more, less) in zip(measured, compared, strict=True)
    ]

    def is_usual(sample: Sample, use: Use) -> bool:
        """Whether runs with about as much are often strained."""
        like = [
            is_strained
            for (other, its), is_strained in zip(measured, strained, strict=True)
            if other.is_good and _is_near(use.allocated, its.allocated, _MORE) and _reads_like(sample, other)
        ]
        return sum(like) > 1 and sum(like) >= _OFTEN * len(like)

    return [
        _spills(sample, more)
        or (is_strained and (sample.gc_pressure > _HOPELESS_GC or is_usual(sample, use)))
        for (sample, use), (more, _), is_strained in zip(measured, compared, strained, strict=True)
    ]


def _collects_more(sample: Sample, more: Sequence[Sample], less: Sequence[Sample]) -> bool:
    share = sample.gc_pressure
    if not more:
        return share > _HOPELESS_GC and not _is_in_vain(sample, less)
    return share > max(GC_SHARE, _MORE_GC * median(other.gc_pressure for other in more))


def _spills(sample: Sample, more: Sequence[Sample]) -> bool:
    return bool(more and sample.spilled) and median(other.spilled or 0.0 for other in more) == 0


def _is_in_vain(sample: Sample, less: Sequence[Sample]) -> bool:
    """Whether runs with less collected garbage for as large a share of their time."""
    usual = median([other.gc_pressure for other in less] or [0.0])
    return usual / _SAME_GC <= sample.gc_pressure <= usual * _SAME_GC


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
    return _is_near(one.input, other.input, _LIKE)


def _is_near(one: float, other: float, factor: float) -> bool:
    return max(one, other) <= factor * min(one, other)
