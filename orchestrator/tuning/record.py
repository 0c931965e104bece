"""The node of a tuning: what operators have set for a name, and the last decisions, as zkCli shows it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.model.act import Act, Word
from orchestrator.model.errors import CorruptTuning, InvalidTuning
from orchestrator.model.tuning import TuningMode
from orchestrator.tuning.decision import Decision, Situation
from orchestrator.tuning.resources import Resource
from queues import decode, encode

MAX_DECISIONS = 20  # each has some 2 KiB
MAX_BYTES = 128 * 1024

_MAX_VALUE = 2.0**31  # MiB, or processes
_Amounts = Annotated[dict[Resource, Annotated[float, Field(gt=0, le=_MAX_VALUE)]], Field(max_length=7)]


class StoredDecision(BaseModel):
    """A decision as it was made; `run` is the attempt that got it, empty for a suggestion."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    at: Word
    run: Word = ""
    job: Word = ""  # of the attempt, or of the run after which it was suggested
    code: Word
    parameters: Word
    runs: int
    left_out: str = ""
    input: float | None = None
    choices: dict[str, dict[str, Any]]

    @classmethod
    def of(
        cls, decision: Decision, situation: Situation, *, at: str, job: str, run: str = ""
    ) -> "StoredDecision":
        """What is stored of a decision."""
        return cls(
            at=at,
            run=run,
            job=job,
            code=situation.key.code,
            parameters=situation.key.parameters,
            runs=decision.runs,
            left_out=decision.left_out,
            input=situation.input,
            choices={each.resource.value: each.to_json() for each in decision.choices},
        )

    @property
    def essence(self) -> tuple[object, ...]:
        """What it chooses, for whom, and by which rules, without figures."""
        chosen = [(name, found.get("after"), found.get("rule")) for name, found in self.choices.items()]
        return self.run, self.code, self.parameters, chosen


class TuningRecord(BaseModel):
    """The node of one name. It changes by copy."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    name: str
    mode: TuningMode | None = None  # of an operator, which wins over that of the definition
    pins: _Amounts = {}
    caps: _Amounts = {}
    forgotten: Word = ""  # the run after which the tuning begins anew
    changed: Act | None = None
    decisions: tuple[StoredDecision, ...] = ()  # the last ones, oldest first

    @classmethod
    def decode(cls, name: str, path: str, data: bytes) -> "TuningRecord":
        """The record in these bytes; raises CorruptTuning."""
        if len(data) > MAX_BYTES:
            raise CorruptTuning(name, path, f"it has more than {MAX_BYTES:,} bytes")
        try:
            return cls.model_validate({**decode(data), "name": name})
        except ValidationError as error:
            raise CorruptTuning(name, path, f"{error.error_count()} fields are wrong") from error
        except ValueError as error:
            raise CorruptTuning(name, path, str(error)) from error

    def encode(self) -> bytes:
        """The bytes of the node, with as many of the last decisions as fit."""
        record = self
        while len(data := encode(record.model_dump(mode="json", exclude_none=True))) > MAX_BYTES:
            record = record.model_copy(update={"decisions": record.decisions[1:]})
        return data

    @property
    def is_set(self) -> bool:
        """Whether an operator has set anything."""
        return bool(self.mode or self.pins or self.caps or self.forgotten)

    def with_decision(self, decision: StoredDecision) -> "TuningRecord":
        """The record with a decision; one that says the same as the last one, from more runs, replaces it."""
        earlier = [each for each in self.decisions if not decision.run or each.run != decision.run]
        if earlier and decision.essence == earlier[-1].essence:
            if decision.choices == earlier[-1].choices and decision.left_out == earlier[-1].left_out:
                return self
            earlier.pop()
        return self.model_copy(update={"decisions": (*earlier, decision)[-MAX_DECISIONS:]})

    def changed_by(self, act: Act, **changes: Any) -> "TuningRecord":
        """The record after the change of an operator; raises InvalidTuning where pin and cap contradict."""
        after = self.model_copy(update={**changes, "changed": act})
        for resource, pin in after.pins.items():
            cap = after.caps.get(resource)
            if cap is not None and pin > cap:
                raise InvalidTuning(
                    f"{resource} would be pinned to {resource.written(pin)} and capped at "
                    f"{resource.written(cap)}: change one of them"
                )
        return after


def amounts(given: Mapping[str, str]) -> dict[Resource, float]:
    """Pins or caps as operators write them, `executor.memory=2g`; raises InvalidTuning."""
    return {_resource(name): _amount(_resource(name), text) for name, text in given.items()}


def _resource(name: str) -> Resource:
    try:
        return Resource(name)
    except ValueError:
        known = ", ".join(Resource)
        raise InvalidTuning(f"{name!r} is no resource that is tuned: use one of {known}") from None


def _amount(resource: Resource, text: str) -> float:
    found = resource.parsed(text)
    if found is None or not resource.least <= found <= _MAX_VALUE:
        example = "2g" if resource.is_memory else "4"
        least = resource.written(resource.least)
        raise InvalidTuning(
            f"{resource}={text} is not possible: write at least {least}, for example {example}"
        )
    return found
