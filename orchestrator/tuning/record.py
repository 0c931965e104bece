"""The node of a tuning: what operators have set for a name, and the last decisions, as zkCli shows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from orchestrator.model.act import Act, Word
from orchestrator.model.errors import CorruptTuning, InvalidTuning
from orchestrator.model.tuning import TuningMode
from orchestrator.tuning.decision import Decision, Situation
from orchestrator.tuning.resources import Resource
from queues import decode, encode
from spark_runner.protocol.text import shortened

MAX_DECISIONS = 20  # each has some 2 KiB
MAX_BYTES = 128 * 1024

_MAX_LOCATION = 100  # characters: other programs may write keys of any size

_MAX_VALUE = 2.0**31  # MiB, or processes
_Text = Annotated[str, Field(max_length=2_000)]  # a sentence has 600 characters at most


def _possible(found: dict[Resource, float]) -> dict[Resource, float]:
    for resource, value in found.items():
        if not resource.least <= value <= _MAX_VALUE:
            message = f"{resource} is {value:g}: from {resource.least:g} to {_MAX_VALUE:,.0f} is possible"
            raise ValueError(message)
    return found


_Amounts = Annotated[dict[Resource, float], Field(max_length=7), AfterValidator(_possible)]


class ModeSource(StrEnum):
    """Who has set the mode of a name, the strongest first."""

    OPERATOR = "operator"
    DEFINITION = "definition"
    POOL = "pool"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ModeInForce:
    """The mode of a run, and who has set it."""

    mode: TuningMode
    source: ModeSource


class StoredDecision(BaseModel):
    """A decision as it was made; `run` is the attempt that got it, empty for a suggestion."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    at: Word
    run: Word = ""
    job: Word = ""  # of the attempt, or of the run after which it was suggested
    mode: Word = ""  # in force then, with its source; both are empty in decisions of earlier versions
    mode_from: Word = ""
    code: Word
    parameters: Word
    runs: Annotated[int, Field(ge=0)]
    left_out: _Text = ""
    input: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    choices: dict[Word, dict[Word, _Text]]

    @classmethod
    def of(
        cls,
        decision: Decision,
        situation: Situation,
        *,
        at: str,
        job: str,
        run: str = "",
        mode: ModeInForce | None = None,
    ) -> "StoredDecision":
        """What is stored of a decision."""
        return cls(
            at=at,
            run=run,
            job=job,
            mode="" if mode is None else mode.mode.value,
            mode_from="" if mode is None else mode.source.value,
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

    @property
    def figures(self) -> tuple[object, ...]:
        """What it follows from."""
        return self.mode, self.mode_from, self.runs, self.left_out, self.input, self.choices


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
            first = error.errors(include_url=False)[0]
            where = shortened(".".join(map(str, first["loc"])), _MAX_LOCATION)
            raise CorruptTuning(name, path, f"{where}: {first['msg']}") from error
        except ValueError as error:
            raise CorruptTuning(name, path, str(error)) from error

    def encode(self) -> bytes:
        """The bytes of the node, with as many of the last decisions as fit."""
        record = self
        while len(data := encode(record.model_dump(mode="json", exclude_none=True))) > MAX_BYTES:
            record = record.model_copy(update={"decisions": record.decisions[1:]})
        return data

    @property
    def is_governed(self) -> bool:
        """Whether a mode, a pin or a cap of an operator is in force."""
        return bool(self.mode or self.pins or self.caps)

    @property
    def is_set(self) -> bool:
        """Whether an operator has set anything, or has reset it."""
        return self.is_governed or bool(self.forgotten)

    def with_decision(self, decision: StoredDecision) -> "TuningRecord":
        """The record with a decision.

        One that says the same as the last one, or as that of the same run, from more runs, replaces it.
        """
        same = [each for each in self.decisions if decision.run and each.run == decision.run]
        if (last := (same or list(self.decisions))[-1:]) and decision.essence == last[0].essence:
            if same or decision.figures == last[0].figures:
                return self
            same = last
        earlier = [each for each in self.decisions if each not in same]
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


def resources(names: Iterable[str]) -> set[Resource]:
    """Resources by their names; raises InvalidTuning."""
    return {_resource(name) for name in names}


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
