"""The state of a job as its record carries it, and the view of it for people."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.models.act import Act
from orchestrator.models.waiting import Waiting
from orchestrator.states import FINAL, Queue, Status
from queues.documents import timestamp
from queues.record import Record

UNREADABLE = "unreadable"
"""The error class of what stands for a record that cannot be read."""

_MAX_CLASS, _MAX_MESSAGE, _MAX_TRACEBACK = 200, 4_000, 8_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class JobError(BaseModel):
    """Why the last attempt did not succeed."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    error_class: str
    message: str
    type: str = ""
    traceback: str = ""

    @field_validator("error_class", "message", "type", "traceback")
    @classmethod
    def _fits(cls, value: str, info: ValidationInfo) -> str:
        # It stands in the record and on screens: a secret, what JSON would blow up six times, and what UTF-8
        # cannot carry are replaced.
        value = REDACTOR.mask(value)
        limit = {"traceback": _MAX_TRACEBACK, "error_class": _MAX_CLASS}.get(
            str(info.field_name), _MAX_MESSAGE
        )
        text = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)
        return text[-limit:] if info.field_name == "traceback" else text[:limit]


class CallbackState(BaseModel):
    """How far the callback of the present outcome has come."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    attempts: int = 0
    done: bool = False  # told, or given up: what follows is not told again
    error: str | None = None  # why the last try was none
    stopped: bool = False  # somebody asked to stop the job meanwhile: no answer runs it again


class Notice(BaseModel):
    """An event before the end of a job; it stays in the record until it is told, or given up."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    number: int
    body: dict[str, Any]  # what is told, each time the same, but for what each event of the job has
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
    """The payload of a job's record. It evolves by copy; times are ISO 8601 in UTC."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    status: Status
    previous: Status | None = None  # the status before
    attempt: int = 0  # number of the last attempt; never reset
    failures: int = 0  # attempts that failed; what `retry.attempts` limits
    submissions: int = 0  # submissions that failed for passing reasons, since one succeeded
    demotions: int = 0  # times that it ran into `timeout.run` and was put into the low lane
    handler_errors: int = 0  # what `dead` is decided by; apart from the job's own failures
    created: str
    updated: str
    first_started: str | None = None  # start of the first attempt that had one
    started: str | None = None  # start of the last attempt
    ended: str | None = None  # when the last verdict was reached
    application_id: str | None = None  # of the last attempt, once it is known
    place: dict[str, Any] | None = None  # where the last attempt was submitted
    unsent: int = 0  # the attempt that was given up before anything was sent to its backend
    error: JobError | None = None
    warning: str | None = None  # why it is RUNNING_WARN
    last_seen: str | None = None  # when the backend told of the last attempt, as of the last change
    polls: int = 0  # how often it was asked about the last attempt, likewise
    unknown_answers: int = 0  # how many of them told nothing, likewise
    queued_limit: float = 0.0  # `timeout.queued` in seconds, so that nobody has to read the definition
    slot: int | None = None  # its place among the running jobs of a capped pool
    name_slot: int | None = None  # its place among the running jobs of its name
    callback: CallbackState = CallbackState.model_construct()
    notices: int = 0  # events so far that were to be told; never reset, as their numbers are in the keys
    announced: int = 0  # the last attempt of which it was noted that it runs, where somebody wants to be told
    outbox: tuple[Notice, ...] = ()  # what is to be told before the end, the first one first
    undelivered: tuple[Undelivered, ...] = ()  # the last callbacks that were given up
    archive: str | None = None  # the host that writes it into its archive: nobody else does
    buried_from: dict[str, str] | None = None  # in dead: the queue and the status that it had
    buried_error: JobError | None = None  # in dead: the error that it had before the one that buried it
    times: dict[str, str] = {}  # queue -> when the job last came to it
    waiting: Waiting | None = None  # why a worker left it in accept, at the last look since it came there
    submitted: Act | None = None  # who enqueued it
    actions: tuple[Act, ...] = ()  # what operators did to it, the last ones, oldest first

    @classmethod
    def enqueued(cls, name: str, *, queued_limit: float = 0.0, submitted: Act | None = None) -> "JobState":
        """The state of a job that is being enqueued now."""
        now = timestamp()
        return cls(
            name=name,
            status=Status.ACCEPT,
            created=now,
            updated=now,
            queued_limit=queued_limit,
            submitted=submitted,
            times={Queue.ACCEPT.value: now},
        )

    def evolve(self, **changes: Any) -> "JobState":
        """A copy with these fields changed, and with what follows: the status before, the first start.

        With a status it waits for nothing that was said before. The next end has another number once a
        callback is done, and in accept again: a worker may have told an end, and died before it wrote so.
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
    """A job as `list` shows it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    run_key: str = Field(exclude=True)
    name: str
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
    error: JobError | None
    buried_error: JobError | None = None  # in dead: the error before the one that buried it
    warning: str | None = None
    callback: CallbackState = CallbackState.model_construct()
    undelivered: tuple[Undelivered, ...] = ()
    times: dict[str, str]
    submitted: Act | None = None
    actions: tuple[Act, ...] = ()

    @classmethod
    def unreadable(cls, job_id: str, pool: str, queue: Queue, *, since: str, reason: str) -> "JobView":
        """The view of a record that cannot be read: where its token stands since when, and what is wrong.

        It has no name, and the status of what cannot be processed; whoever claims it brings it to dead.
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
        """Whether more is known of it than its token tells."""
        return self.error is None or self.error.error_class != UNREADABLE

    @property
    def is_final(self) -> bool:
        """Whether nothing will happen to the job any more."""
        return self.queue is Queue.DEAD or (self.queue is Queue.FINISH and self.status in FINAL)

    @classmethod
    def of(cls, record: Record) -> "JobView":
        """The view of a record; raises ValidationError for a payload that is no job's."""
        state = JobState.model_validate(record.payload)
        return cls(
            id=record.id,
            run_key=record.run_key,
            pool=record.pool,
            queue=Queue(record.queue),
            **state.model_dump(),
        )
