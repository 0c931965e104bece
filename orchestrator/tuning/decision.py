"""The decision about the resources of the next run: a pure function of the runs so far and of all limits.

Which wins over which, from the strongest: the limit of a container, the pin and the cap of an operator, a
resource that the definition pins, what the attempt before had, the growth after a run out of memory, the law,
the defaults of the pool.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.config.tuning import Gains
from orchestrator.history.key import Key
from orchestrator.tuning import words
from orchestrator.tuning.guards import growth_held, held, judged
from orchestrator.tuning.law import FLOOR_FACTOR, Rule, grown, next_step
from orchestrator.tuning.resources import Resource, tasks_at_a_time
from orchestrator.tuning.samples import Measured, Samples, alternating, samples_of
from orchestrator.tuning.signals import Run, is_local, is_open, resource_of

UNKNOWN = "unknown"  # the rule where no run has measured a resource
MOST_GROWTH = 4.0  # times what the definition asks for, where no operator has set a cap
_HEAPS = {"driver": Resource.DRIVER_MEMORY, "executor": Resource.EXECUTOR_MEMORY}
_OVERHEADS = {"driver": Resource.DRIVER_OVERHEAD, "executor": Resource.EXECUTOR_OVERHEAD}


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a decision depends on, besides the runs; sizes in MiB.

    `asked`: the Spark properties by definition and pool. `kept`: pinned by the definition; `pins` and `caps`
    are those of an operator. `containers`: the largest sum of heap and overhead by process; `hosts`: the
    same, for what grows beyond what was asked for. `forgotten`: the run up to which an operator has reset the
    tuning. `input`: the size of what the next run reads. `before`: the Spark properties of the attempt before
    of the same job; `short_of`: what that was short of, if it was out of memory.
    """

    key: Key
    asked: Mapping[str, object]
    kept: frozenset[Resource] = frozenset()
    pins: Mapping[Resource, float] = field(default_factory=dict)
    caps: Mapping[Resource, float] = field(default_factory=dict)
    containers: Mapping[str, float] = field(default_factory=dict)
    hosts: Mapping[str, float] = field(default_factory=dict)
    forgotten: str = ""
    gains: Gains = field(default_factory=Gains)
    input: float | None = None
    before: Mapping[str, object] | None = None
    short_of: str | None = None
    now: str = ""  # ISO 8601 in UTC


@dataclass(frozen=True, slots=True)
class Choice:
    """What one resource gets, and why; `asked` is 0 where the definition leaves it to the cluster."""

    resource: Resource
    asked: float
    before: float
    after: float
    rule: str
    why: str
    largest: float | None = None  # demand of the runs
    needed: float | None = None  # see Step

    def to_json(self) -> dict[str, str]:
        """As the node of the tuning stores it."""
        write = self.resource.written
        found = {
            "before": write(self.before),
            "after": write(self.after),
            "asked": write(self.asked) if self.asked else "",
            "rule": self.rule,
            "why": self.why,
        }
        return found if self.largest is None else {**found, "largest": write(self.largest)}


@dataclass(frozen=True, slots=True)
class Decision:
    """The choices by resource, and which runs they follow from."""

    choices: tuple[Choice, ...]
    runs: int
    left_out: str  # why runs are left out, in words

    @property
    def properties(self) -> dict[str, str]:
        """The Spark properties that differ from what the definition asks for.

        The default of an overhead is a share of its heap: it is set where the heap changes, so that a smaller
        heap does not take memory from Python.
        """
        changed = {each.resource for each in self.choices if each.after != each.asked}
        moved = {_OVERHEADS[process] for process, heap in _HEAPS.items() if heap in changed}
        return {
            each.resource.spark_property: each.resource.written(each.after)
            for each in self.choices
            if each.resource in changed | moved
        }

    @property
    def says_anything(self) -> bool:
        """Whether any resource was measured, or is otherwise than asked for."""
        return any(each.rule != UNKNOWN or each.after != each.asked for each in self.choices)


def decide(runs: Sequence[Run], situation: Situation) -> Decision:
    """The decision after these entries of the history, newest last."""
    samples = samples_of(
        runs, situation.key, forgotten=situation.forgotten, now=situation.now, conf=situation.asked
    )
    choices = [
        choice for resource in Resource if (choice := _choice(resource, samples, situation)) is not None
    ]
    return Decision(_within_containers(choices, situation), len(samples.all), samples.left_out)


def _choice(resource: Resource, samples: Samples, situation: Situation) -> Choice | None:
    """None where there is nothing to choose: no such process, or Spark decides."""
    asked = None if is_open(resource, situation.asked) else resource.value_in(situation.asked)
    pin = situation.pins.get(resource)
    if pin is not None and not is_open(resource, situation.asked):
        return _fixed(resource, asked or 0.0, pin, "pinned", words.PINNED)
    if asked is None:
        return None
    cap = situation.caps.get(resource)
    chosen = _no_less(_free_choice(resource, asked, samples, situation), situation)
    if cap is None or chosen.after <= cap:
        return chosen
    return replace(chosen, after=cap, rule="capped", why=words.capped(resource, chosen.why, cap))


def _no_less(chosen: Choice, situation: Situation) -> Choice:
    """At least what the attempt before had: if that failed for another reason, it may have needed it."""
    resource = chosen.resource
    had = None if situation.before is None else resource.value_in(situation.before)
    if had is None or had <= chosen.after or resource in situation.kept:
        return chosen
    return replace(chosen, after=had, rule="retry", why=words.retry(resource, chosen.why, had))


def _free_choice(resource: Resource, asked: float, samples: Samples, situation: Situation) -> Choice:
    """The choice without a pin and a cap of an operator."""
    if resource in situation.kept:
        return _fixed(resource, asked, asked, "kept", words.KEPT)
    most = situation.caps.get(resource) or _most(resource, asked, situation)
    bounds = resource.bounds(most, asked)
    if resource is resource_of(situation.short_of, is_local=is_local(situation.asked)):
        had = resource.value_in(situation.before or situation.asked) or asked
        after = max(bounds.clamped(grown(had, bounds, situation.gains)), min(had, bounds.largest))
        why = words.short(resource, had, after)
        return Choice(resource, asked, had, after, Rule.SHORT, why, needed=FLOOR_FACTOR * had)
    measured: Measured = samples.of(resource)
    if not measured:
        return _fixed(resource, asked, asked, UNKNOWN, words.UNKNOWN)
    tasks = tasks_at_a_time(situation.asked)
    if own := alternating(resource, measured, asked, tasks):
        measured = own
    else:
        sample, last = measured[-1]
        if (earlier := sample.asked_for(resource)) is not None and earlier != asked:
            why = words.by_hand(resource, earlier, asked)
            return Choice(resource, asked, last.allocated, asked, "by_hand", why)
        had_fewer = sample.asked_tasks is not None and sample.asked_tasks < tasks
        if resource.is_memory and had_fewer and asked > last.allocated:
            return Choice(
                resource, asked, last.allocated, asked, "by_hand", words.more_tasks(resource, asked)
            )
    measured = judged(resource, measured)
    uses = [use for _, use in measured]
    following = situation.input if samples.has_stated_inputs else None
    guard = held(resource, samples.all)
    growth_guard = growth_held(resource, measured, situation.gains, following)
    step = next_step(
        uses,
        bounds,
        resource.gains(situation.gains),
        next_input=following,
        may_shrink=not guard,
        may_grow=not growth_guard,
    )
    guard = growth_guard if step.target > step.before else guard
    why = words.step(resource, step, len(uses), guard=guard, is_pressed=uses[-1].is_pressed)
    largest = None if step.demand is None else step.demand.largest_value
    return Choice(resource, asked, step.before, step.after, step.rule, why, largest, step.needed)


def _most(resource: Resource, asked: float, situation: Situation) -> float:
    """What it may grow to, where no operator has set a cap: only a memory grows beyond what is asked for."""
    if not resource.is_memory:
        return asked
    most = MOST_GROWTH * asked
    if resource.process in situation.hosts:
        beside = (_HEAPS if resource.is_overhead else _OVERHEADS)[resource.process].value_in(situation.asked)
        most = min(most, situation.hosts[resource.process] - (beside or 0.0))
    return max(most, asked)


def _fixed(resource: Resource, asked: float, after: float, rule: str, why: str) -> Choice:
    return Choice(resource, asked, asked or after, after, rule, why.format(value=resource.written(after)))


def _within_containers(choices: Sequence[Choice], situation: Situation) -> tuple[Choice, ...]:
    """The choices, of which heap and overhead of each process together fit its container."""
    found = {choice.resource: choice for choice in choices}
    for process, limit in situation.containers.items():
        heap, overhead = found.get(_HEAPS[process]), found.get(_OVERHEADS[process])
        if heap is None or overhead is None or heap.after + overhead.after <= limit:
            continue
        rest = _overhead_within(limit, heap, overhead)
        for choice, after in ((heap, max(limit - rest, 0.0)), (overhead, rest)):
            if after != choice.after:
                why = words.contained(choice.resource, choice.why, after, limit)
                found[choice.resource] = replace(choice, after=after, rule="container", why=why)
    return tuple(found.values())


def _overhead_within(limit: float, heap: Choice, overhead: Choice) -> float:
    """The overhead in a container that is too small for both choices.

    Where what both need fits, they keep what they had, or share the rest in proportion to what they would
    have beyond it. Else the heap gives way first: a process that outgrows its container is killed.
    """
    both = (heap, overhead)
    needs = [each.needed or math.inf for each in both]
    if (rest := limit - sum(needs)) < 0:
        return min(overhead.after, max(limit - heap.resource.least, 0.0))
    had = [each.before for each in both]
    if sum(had) <= limit and all(before >= need for before, need in zip(had, needs, strict=True)):
        return overhead.before
    beyond = [max(each.after - need, 0.0) for each, need in zip(both, needs, strict=True)]
    found = math.floor(needs[1] + rest * (beyond[1] / sum(beyond) if any(beyond) else 0.0))
    least = [min(each.resource.least, each.asked or math.inf) for each in both]
    return max(min(found, limit - least[0]), min(least[1], overhead.after))
