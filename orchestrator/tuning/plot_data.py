"""What a plot of a tuning shows: the runs of one name, what each had and used, and what was decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.config.tuning import Gains
from orchestrator.history.key import Key
from orchestrator.tuning.demand import Use
from orchestrator.tuning.guards import judged
from orchestrator.tuning.law import next_step
from orchestrator.tuning.needs import heap_peak
from orchestrator.tuning.record import StoredDecision, TuningRecord
from orchestrator.tuning.resources import MIB, Resource
from orchestrator.tuning.samples import last_key, samples_of
from orchestrator.tuning.signals import Run, Sample

_UNBOUNDED = 2.0**31  # the target of the law, before any limit


class Mark(StrEnum):
    """What happened to the allocation of a run, or in the run."""

    RAISED = "raised"
    LOWERED = "lowered"
    SHORT = "out of memory"
    PRESSED = "pressed"
    FAILED = "failed otherwise"
    PINNED = "pinned"
    LIMITED = "limited"  # by a cap of an operator, or by a container
    BY_HAND = "changed by hand"
    RESET = "reset"  # it is the first one after that


_RULES = {
    "pinned": Mark.PINNED,
    "capped": Mark.LIMITED,
    "container": Mark.LIMITED,
    "by_hand": Mark.BY_HAND,
}


@dataclass(frozen=True, slots=True)
class Point:
    """One run, or the next one; amounts in the unit of the resource, MiB for a memory, None = unknown.

    `peak`: the most of a heap in use, garbage included. `demand`: what the law takes the run to have needed.
    `target`: what the law, with the runs before this one, aimed at; no step and no limit has made it smaller.
    `spilled` in MiB, `seconds` the run time.
    """

    run: str
    ended: str = ""
    allocated: float | None = None
    peak: float | None = None
    demand: float | None = None
    target: float | None = None
    spilled: float | None = None
    seconds: float | None = None
    marks: tuple[Mark, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlotData:
    """The runs of one key, oldest first; `next` is what the last suggestion gives to the next one."""

    name: str
    resource: Resource
    points: tuple[Point, ...]
    left_out: str = ""  # runs of the history that are not shown, in words
    next: Point | None = None


def plot_data(
    record: TuningRecord, runs: Sequence[Run], resource: Resource, gains: Gains | None = None
) -> PlotData:
    """The data of a plot from the history of a name, oldest first, and its tuning.

    It shows the runs that ran the same program with the same class of parameters as the last one. Without
    `gains` the targets are those of the default gains.
    """
    key = last_key(runs)
    samples = samples_of(runs, key)
    ended = {str(run.get("run")): str(run.get("ended") or "") for run in runs}
    measured = samples.of(resource)
    uses = {id(sample): use for sample, use in judged(resource, measured)}
    choices = {each.run: found for each in record.decisions if each.run and (found := _of(each, resource))}
    points, known, before = list[Point](), list[Use](), None
    for index, sample in enumerate(samples.all):
        use, choice = uses.get(id(sample)), choices.get(sample.run, {})
        is_reset = index > 0 and samples.all[index - 1].run == record.forgotten
        if is_reset:
            known.clear()
        point = _point(sample, resource, use, before)
        rule = _RULES.get(str(choice.get("rule")))
        extra = (*((Mark.RESET,) if is_reset else ()), *((rule,) if rule else ()))
        points.append(
            replace(
                point,
                ended=ended.get(sample.run, ""),
                target=_target(known, resource, gains or Gains(), use),
                marks=(*extra, *point.marks),
                why=str(choice.get("why") or ""),
            )
        )
        before = point.allocated if point.allocated is not None else before
        if use is not None:
            known.append(use)
    following = _next(record, resource, key, before)
    return PlotData(record.name, resource, tuple(points), samples.left_out, following)


def measured_resources(runs: Sequence[Run]) -> list[Resource]:
    """The resources that runs of the same key as the last one have measured."""
    samples = samples_of(runs, last_key(runs))
    return [resource for resource in Resource if samples.of(resource)]


def _of(decision: StoredDecision, resource: Resource) -> Mapping[str, object]:
    found = decision.choices.get(resource.value)
    return found if isinstance(found, Mapping) else {}


def _point(sample: Sample, resource: Resource, use: Use | None, before: float | None) -> Point:
    """What a run measured by itself, with the change since the run before."""
    allocated, peak, marks = sample.allocated(resource), heap_peak(sample, resource), list[Mark]()
    if allocated is not None and before is not None and allocated != before:
        marks.append(Mark.RAISED if allocated > before else Mark.LOWERED)
    if use is not None and use.is_short:
        marks.append(Mark.SHORT)
    elif not sample.is_good:
        marks.append(Mark.FAILED)
    if use is not None and use.is_pressed:
        marks.append(Mark.PRESSED)
    return Point(
        run=sample.run,
        allocated=allocated,
        peak=peak,
        demand=None if use is None or use.is_short else use.peak,
        spilled=None if sample.spilled is None else sample.spilled / MIB,
        seconds=sample.seconds,
        marks=tuple(marks),
    )


def _target(known: Sequence[Use], resource: Resource, gains: Gains, use: Use | None) -> float | None:
    """What the law aimed at after these runs; None before the first one."""
    if not known:
        return None
    following = None if use is None else use.input
    return next_step(known, resource.bounds(_UNBOUNDED), resource.gains(gains), next_input=following).target


def _next(record: TuningRecord, resource: Resource, key: Key, before: float | None) -> Point | None:
    """The run that is not there yet, by the last suggestion."""
    last = record.decisions[-1] if record.decisions else None
    if last is None or last.run or (last.code, last.parameters) != (key.code, key.parameters):
        return None
    choice = _of(last, resource)
    after = resource.parsed(str(choice.get("after") or ""))
    if after is None:
        return None
    change = None if before is None or after == before else Mark.RAISED if after > before else Mark.LOWERED
    marks = (rule,) if (rule := _RULES.get(str(choice.get("rule")))) else ()
    return Point(
        "next",
        allocated=after,
        marks=(*marks, *((change,) if change else ())),
        why=str(choice.get("why") or ""),
    )
