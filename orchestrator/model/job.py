"""The state of a job, in the payload of its record."""

import re
from collections.abc import Mapping
from dataclasses import field, fields
from operator import attrgetter
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.dataclasses import dataclass

from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.record.secret_patterns import is_secret
from orchestrator.model.act import Act
from orchestrator.model.fields import explain
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Waiting
from queues import CorruptRecord, Record, encode, timestamp
from spark_runner.protocol.shortages import valid_shortage

MAX_LABEL_BYTES = 1_000
"""Of the labels in a record, in JSON; the definition has all of them."""

_MAX_CLASS, _MAX_MESSAGE, _MAX_TRACEBACK = 200, 4_000, 8_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class JobError(BaseModel):
    """The reason why the last attempt did not succeed."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    error_class: str
    message: str
    type: str = ""
    traceback: str = ""
    short_of: str | None = None  # of class `memory`: one of SHORTAGES, where that is known

    @field_validator("short_of", mode="before")
    @classmethod
    def _is_known(cls, value: object) -> str | None:
        return valid_shortage(value)

    @field_validator("error_class", "message", "type", "traceback")
    @classmethod
    def _fits(cls, value: str, info: ValidationInfo) -> str:
        # The text is stored in the record and shown on terminals: this replaces secrets, control characters
        # (each takes six characters in JSON) and surrogates, which UTF-8 cannot encode.
        value = REDACTOR.mask(value)
        limit = {"traceback": _MAX_TRACEBACK, "error_class": _MAX_CLASS}.get(
            str(info.field_name), _MAX_MESSAGE
        )
        text = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)
        return text[-limit:] if info.field_name == "traceback" else text[:limit]


class CallbackState(BaseModel):
    """The progress of the callback for the current outcome."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    attempts: int = 0
    done: bool = False  # delivered or given up: it is not sent again
    error: str | None = None  # why the last try failed
    stopped: bool = False  # the job was killed meanwhile: no answer may run it again


class Notice(BaseModel):
    """An event before the end of a job; it stays in the record until it is delivered or given up."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    number: int
    body: dict[str, Any]  # the same in each try, but for the fields that all events of the job have
    tries: int = 0


class Undelivered(BaseModel):
    """A callback that was given up."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    event: str
    number: int
    tries: int
    error: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="ignore"))
class JobState:  # no BaseModel: a worker keeps thousands, and one of those takes five times the memory
    """The payload of a job's record. It changes by copy; times are ISO 8601 in UTC."""

    name: str
    mode: str = ""  # of a SQL script that reads streams; empty for `batch` and for programs
    trigger_seconds: float = 0.0  # of mode `streaming`: the time between two micro-batches
    status: Status
    previous: Status | None = None  # the former status
    attempt: int = 0  # the number of the last attempt; never reset
    failures: int = 0  # failed attempts; `retry.attempts` limits them
    submissions: int = 0  # submissions that failed for transient reasons since the last success
    demotions: int = 0  # times that it exceeded `timeout.run` and was moved to the low lane
    handler_errors: int = 0  # too many move it to dead; failures of the job itself do not count
    created: str
    updated: str
    first_started: str | None = None  # the start of the first attempt that started
    started: str | None = None  # the start of the last attempt
    ended: str | None = None  # the time of the last verdict
    application_id: str | None = None  # of the last attempt, once known
    history: str | None = None  # where Spark's history of the last attempt is found, once it has ended
    place: dict[str, Any] | None = None  # the backend and host of the last attempt
    worker: str = ""  # the worker that began the last attempt
    tuned: dict[str, str] | None = None  # Spark properties that the tuning gave the last attempt
    checkpoint: str | None = None  # the URL of the folder of its checkpoints, if it reads streams
    unsent: int = 0  # the attempt that was given up before it was sent to its backend
    error: JobError | None = None
    warning: str | None = None  # the reason for RUNNING_WARN
    last_seen: str | None = None  # when the backend last reported the attempt, as of the last change
    polls: int = 0  # how often it was asked about the attempt, likewise
    unknown_answers: int = 0  # how many of its answers were unknown, likewise
    queued_limit: float = 0.0  # `timeout.queued` in seconds: saves a read of the definition
    slot: int | None = None  # the slot that it holds in a capped pool
    name_slot: int | None = None  # the slot that it holds among jobs of its name
    callback: CallbackState = CallbackState.model_construct()
    notices: int = 0  # events so far; never reset, as their numbers are part of the delivery keys
    announced: int = 0  # the last attempt whose start is an event, where the callback asks for it
    outbox: tuple[Notice, ...] = ()  # events to deliver before the end, oldest first
    undelivered: tuple[Undelivered, ...] = ()  # the last callbacks that were given up
    archive: str | None = None  # the only host that writes the job into its archive
    buried_from: dict[str, str] | None = None  # in dead: the former queue and status
    buried_error: JobError | None = None  # in dead: the error before the one that moved it there
    times: dict[str, str] = field(default_factory=dict)  # queue -> when the job last entered it
    waiting: Waiting | None = None  # why the last worker that claimed it in accept deferred it
    submitted: Act | None = None  # the act that enqueued it
    actions: tuple[Act, ...] = ()  # the last acts of operators, oldest first
    labels: dict[str, str] = field(default_factory=dict)  # of its definition, as many as `searchable` keeps

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "JobState":
        """The state in the payload of a record; raises ValidationError."""
        return _ADAPTER.validate_python(payload)

    def to_payload(self, *, exclude: set[str] | None = None, with_defaults: bool = False) -> dict[str, Any]:
        """The payload of a record: defaults are left out, so that records stay small and readable."""
        payload: dict[str, Any] = _ADAPTER.dump_python(
            self, mode="json", exclude_defaults=not with_defaults, exclude=exclude
        )
        return payload

    @classmethod
    def enqueued(
        cls,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        mode: str = "",
        trigger_seconds: float = 0.0,
        queued_limit: float = 0.0,
        submitted: Act | None = None,
    ) -> "JobState":
        """The state of a job that is enqueued now."""
        now = timestamp()
        return cls(
            name=name,
            mode=mode,
            trigger_seconds=trigger_seconds,
            status=Status.ACCEPT,
            created=now,
            updated=now,
            queued_limit=queued_limit,
            submitted=submitted,
            labels=searchable(labels or {}),
            times={Queue.ACCEPT.value: now},
        )

    def evolve(self, **changes: Any) -> "JobState":
        """A copy with these fields changed, and the fields that depend on them: `previous`, `first_started`.

        A status clears `waiting`. `notices` grows when a callback is done, and on the way back to accept, so
        that the next end gets another number: a worker may have delivered an end and crashed before it
        recorded the delivery.
        """
        if "status" in changes:
            changes.setdefault("waiting", None)
        if changes.get("status", self.status) != self.status:
            changes.setdefault("previous", self.status)
            if changes["status"] is Status.ACCEPT:
                changes.setdefault("notices", self.notices + 1)
        if self.first_started is None and changes.get("started") is not None:
            changes["first_started"] = changes["started"]
        callback = changes.get("callback")
        if isinstance(callback, CallbackState) and callback.done and not self.callback.done:
            changes.setdefault("notices", self.notices + 1)
        new = object.__new__(JobState)  # `replace` would validate again
        for assign, value in zip(_ASSIGNMENTS.values(), _values(self), strict=True):
            assign(new, value)
        for name, value in changes.items():
            _ASSIGNMENTS[name](new, value)
        return new


_FIELDS = tuple(each.name for each in fields(JobState))
_ASSIGNMENTS = {name: vars(JobState)[name].__set__ for name in _FIELDS}  # a third of `object.__setattr__`
_values = attrgetter(*_FIELDS)


_ADAPTER = TypeAdapter(JobState)


def searchable(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that a record stores: the first ones, up to 1,000 bytes in JSON, none that holds a secret.

    ZooKeeper keeps all records in memory, and each change of a job writes its record, and logs it.
    """
    kept, left = dict[str, str](), MAX_LABEL_BYTES
    for name, value in labels.items():
        if is_secret(name):
            continue
        left -= len(encode({name: value}))
        if left < 0:
            break
        kept[name] = value
    return kept


def state_of(record: Record) -> JobState:
    """The state that a record carries; raises CorruptRecord."""
    try:
        return JobState.from_payload(record.payload)
    except ValidationError as error:
        raise CorruptRecord(record.id, f"its payload is not a job: {_mistakes(error)}") from error


def decode_job(job_id: str, data: bytes) -> tuple[Record, JobState | str] | None:
    """The record in these bytes, with its state or the reason why it has none; None for a corrupt record."""
    try:
        record = Record.decode(job_id, data)
    except CorruptRecord:
        return None
    try:
        return record, state_of(record)
    except CorruptRecord as error:
        return record, str(error)


def _mistakes(error: ValidationError) -> str:
    return explain(error, None, "it").replace("\n", "; ")
