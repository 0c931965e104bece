"""What tuning saves: the memory of past runs by definition, as it was, and as the last decision says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.history.key import Key
from orchestrator.tuning.record import TuningRecord
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.samples import samples_of
from orchestrator.tuning.signals import Run, Sample, is_open

_MIB_PER_GIB = 1024
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Saving:
    """One name: memory of its known runs in GiB hours, asked for, given, and with the last decision.

    `short`: runs that were out of memory. `code` and `parameters` are those of the last decision.
    """

    name: str
    runs: int
    asked: float
    given: float
    next: float
    short: int

    @property
    def share(self) -> float:
        """The share of the memory asked for that the last decision saves."""
        return 1 - self.next / self.asked if self.asked else 0.0


def saving_of(record: TuningRecord, runs: Sequence[Run]) -> Saving | None:
    """The saving of a name; None without a decision, or without runs that it is about."""
    if not record.decisions:
        return None
    last = record.decisions[-1]
    samples = samples_of(runs, Key(last.code, last.parameters), forgotten=record.forgotten).all
    samples = tuple({sample.run: sample for sample in samples}.values())  # an hour is part of its run
    hours = [(sample, sample.seconds / _HOUR) for sample in samples if sample.seconds]
    if not hours:
        return None
    chosen = {name: found for name, found in last.choices.items() if isinstance(found, Mapping)}
    asked, after = (_values(chosen, word) for word in ("asked", "after"))
    return Saving(
        record.name,
        len(hours),
        sum(_gib(sample, asked) * each for sample, each in hours),
        sum(_gib(sample, {}) * each for sample, each in hours),
        sum(_gib(sample, after) * each for sample, each in hours),
        sum(sample.short_of is not None for sample in samples),
    )


def _values(choices: Mapping[str, Mapping[str, object]], word: str) -> dict[Resource, float]:
    found = dict[Resource, float]()
    for resource in Resource:
        value = resource.parsed(str(choices.get(resource, {}).get(word, "")))
        if value is not None:
            found[resource] = value
    return found


def _gib(sample: Sample, instead: Mapping[Resource, float]) -> float:
    """The memory of all processes of a run, with other allocations instead of its own."""

    def amount(resource: Resource) -> float:
        if resource in instead:
            return instead[resource]
        return (None if is_open(resource, sample.conf) else resource.value_in(sample.conf)) or 0.0

    executor = amount(Resource.EXECUTOR_MEMORY) + amount(Resource.EXECUTOR_OVERHEAD)
    number = amount(Resource.EXECUTOR_INSTANCES) or sample.executors
    return (
        amount(Resource.DRIVER_MEMORY) + amount(Resource.DRIVER_OVERHEAD) + number * executor
    ) / _MIB_PER_GIB
