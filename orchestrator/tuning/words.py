"""The sentence of each choice, in plain words."""

from orchestrator.tuning.law import Rule, Step
from orchestrator.tuning.resources import Resource

PINNED = "an operator has pinned it to {value}"
_DIRECTIONS = {Rule.GROW: 1, Rule.FLOOR: 1, Rule.SHRINK: -1}
_NEAR = "a recent run was short of it"
KEPT = "the definition pins it: it stays at {value}"
UNKNOWN = "it stays at {value}: no run of this code has measured it"


def by_hand(resource: Resource, earlier: float, asked: float) -> str:
    """The definition, or the default of the pool, was changed since the last run."""
    return (
        f"it was changed from {resource.written(earlier)} to {resource.written(asked)} since the last run: "
        "the next run gets that, and the tuning goes on from there"
    )


def more_tasks(resource: Resource, asked: float) -> str:
    """The definition lets each process run more tasks at a time than in the last run."""
    return (
        f"it gets the {resource.written(asked)} asked for, as each process may run more tasks at a time than "
        "in the last run; the tuning goes on from there"
    )


def short(resource: Resource, had: float, after: float) -> str:
    """The attempt before was out of it."""
    if after <= had:
        return (
            f"the attempt before was out of memory with {resource.written(had)}, which is all that is allowed"
        )
    return (
        f"it rises from {resource.written(had)} to {resource.written(after)}: "
        "the attempt before was out of memory"
    )


def retry(resource: Resource, why: str, had: float) -> str:
    """The attempt before had more than the choice."""
    return f"it stays at {resource.written(had)}, as in the attempt before; without that: {why}"


def capped(resource: Resource, why: str, cap: float) -> str:
    """An operator's cap is lower than the choice."""
    return f"an operator has capped it at {resource.written(cap)}; without that: {why}"


def contained(resource: Resource, why: str, after: float, limit: float) -> str:
    """Heap and overhead together would not fit the container."""
    return (
        f"it gets {resource.written(after)}, as heap and overhead together have {limit:.0f}m in a container; "
        f"without that: {why}"
    )


def step(resource: Resource, found: Step, runs: int, *, guard: str, is_pressed: bool) -> str:
    """A step of the law."""
    before, after = resource.written(found.before), resource.written(found.after)
    wanted = resource.written(found.target)
    past = "the last run" if runs == 1 else f"the last {runs} runs"
    used = f"{past} would have needed {_amount(resource, found)} at most"
    end = "; a step is limited" if found.is_limited else ""
    sentences = {
        Rule.SHORT: f"it rises from {before} to {after}: the last run was out of memory",
        Rule.FLOOR: f"it rises from {before} to {after}: {_NEAR}",
        Rule.HELD: f"it stays at {before}, although {used}: {guard or _NEAR}",
        Rule.DEAD_BAND: f"it stays at {before}: {used}, and {wanted} is too near to it to change",
        Rule.GROW: f"it rises from {before} to {after}: {used}, which calls for {wanted}{end}",
        Rule.SHRINK: f"it falls from {before} to {after}: {used}, for which {wanted} is enough{end}",
    }
    if found.rule is Rule.SHORT and found.after <= found.before:
        return f"it stays at {after}, which is all that is allowed: the last run was out of memory"
    if (found.after - found.before) * _DIRECTIONS.get(found.rule, 0) < 0 or (
        found.rule in {Rule.HELD, Rule.DEAD_BAND} and found.after != found.before
    ):
        return f"it gets {after} instead of {before}, which is beyond a limit: {used}"
    if found.after == found.before and found.at_bound and found.rule not in {Rule.HELD, Rule.DEAD_BAND}:
        return f"it stays at {before}, which is a limit: {used}, which calls for {wanted}"
    if found.after == found.before and found.rule is not Rule.HELD:
        return sentences[Rule.DEAD_BAND]
    if found.rule is Rule.GROW and is_pressed:
        return f"it rises from {before} to {after}: the last run suffered from it, as runs with more did not"
    return sentences[found.rule]


def _amount(resource: Resource, found: Step) -> str:
    return "nothing known" if found.demand is None else resource.written(found.demand.largest_value)
