"""The state of a job in its record, and the view of it for users."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.act import Act
from orchestrator.model.fields import explain
from orchestrator.model.states import FINAL, Queue, Status
from orchestrator.model.waiting import Waiting
from queues import CorruptRecord, Record, timestamp
from spark_runner.protocol.shortages import valid_shortage

UNREADABLE = "unreadable"
"""The error class in the view of a record that cannot be read."""

_MAX_CLASS, _MAX_MESSAGE, _MAX_TRACEBACK = 200, 4_000, 8_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class JobError(BaseModel):
    """The reason why the last attempt did not succeed; `short_of`: the memory that was too small."""

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


class JobState(BaseModel):
    """The payload of a job's record. It changes by copy; times are ISO 8601 in UTC."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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
    times: dict[str, str] = {}  # queue -> when the job last entered it
    waiting: Waiting | None = None  # why the last worker that claimed it in accept deferred it
    submitted: Act | None = None  # the act that enqueued it
    actions: tuple[Act, ...] = ()  # the last acts of operators, oldest first

    @classmethod
    def enqueued(
        cls,
        name: str,
        *,
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
        return self.model_copy(update=changes)


class JobView(BaseModel):
    """A job as `job list` shows it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    run_key: str = Field(exclude=True)
    name: str
    mode: str = ""  # `streaming` or `available-now`; empty for other jobs
    pool: str
    queue: Queue
    status: Status
    attempt: int
    failures: int = 0
    created: str
    updated: str
    started: str | None
    ended: str | None
    application_id: str | None = None
    tuned: dict[str, str] | None = None  # Spark properties that the tuning gave the last attempt
    history: str | None = None  # the page at Spark's history server, else the URL of the event log
    checkpoint: str | None = None  # the URL of the folder of its checkpoints, if it reads streams
    error: JobError | None
    buried_error: JobError | None = None  # in dead: the error before the one that moved it there
    warning: str | None = None
    callback: CallbackState = CallbackState.model_construct()
    undelivered: tuple[Undelivered, ...] = ()
    times: dict[str, str]
    submitted: Act | None = None
    actions: tuple[Act, ...] = ()

    @classmethod
    def unreadable(cls, job_id: str, pool: str, queue: Queue, *, since: str, reason: str) -> "JobView":
        """The view of a record that cannot be read: the queue and the time of its token, and the error.

        It has no name. Its status is DEAD: the next worker that claims it moves it to dead.
        """
        return cls(
            id=job_id,
            run_key="",
            name="",
            pool=pool,
            queue=queue,
            status=Status.DEAD,
            attempt=0,
            created=since,
            updated=since,
            started=None,
            ended=None,
            error=JobError(error_class=UNREADABLE, message=reason),
            times={},
        )

    @property
    def is_readable(self) -> bool:
        """Whether its record could be read."""
        return self.error is None or self.error.error_class != UNREADABLE

    @property
    def is_final(self) -> bool:
        """Whether no worker will handle the job again."""
        return self.queue is Queue.DEAD or (self.queue is Queue.FINISH and self.status in FINAL)

    @classmethod
    def of(cls, record: Record) -> "JobView":
        """The view of a record; raises ValidationError for a payload that is not that of a job."""
        state = JobState.model_validate(record.payload)
        return cls(
            id=record.id,
            run_key=record.run_key,
            pool=record.pool,
            queue=Queue(record.queue),
            **state.model_dump(),
        )


def state_of(record: Record) -> JobState:
    """The state that a record carries; raises CorruptRecord."""
    try:
        return JobState.model_validate(record.payload)
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


def view_of(record: Record) -> JobView:
    """The view of a record; raises CorruptRecord."""
    try:
        return JobView.of(record)
    except ValueError as error:  # of the state, or an unknown queue
        raise CorruptRecord(record.id, f"its payload is not a job: {_mistakes(error)}") from error


def _mistakes(error: ValueError) -> str:
    words = explain(error, JobState, "it") if isinstance(error, ValidationError) else str(error)
    return words.replace("\n", "; ")
