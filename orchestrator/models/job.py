"""The state of a job as its record carries it, and the view of it for people."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from orchestrator.states import FINAL, Queue, Status
from queues.documents import timestamp
from queues.record import Record

_MAX_MESSAGE, _MAX_TRACEBACK = 4_000, 8_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class JobError(BaseModel):
    """Why the last attempt did not succeed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    error_class: str
    message: str
    type: str = ""
    traceback: str = ""

    @field_validator("message", "traceback")
    @classmethod
    def _fits(cls, value: str, info: ValidationInfo) -> str:
        # It stands in the record: what JSON would blow up six times, or UTF-8 cannot carry, is replaced.
        limit = _MAX_MESSAGE if info.field_name == "message" else _MAX_TRACEBACK
        text = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)
        return text[:limit] if info.field_name == "message" else text[-limit:]


class JobState(BaseModel):
    """The payload of a job's record. It evolves by copy; times are ISO 8601 in UTC."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    status: Status
    attempt: int = 0  # number of the last attempt; never reset
    failures: int = 0  # attempts that failed; what `retry.attempts` limits
    handler_errors: int = 0  # what `dead` is decided by; apart from the job's own failures
    created: str
    updated: str
    started: str | None = None  # start of the last attempt
    ended: str | None = None  # when the last verdict was reached
    error: JobError | None = None
    times: dict[str, str] = {}  # queue -> when the job last came to it

    @classmethod
    def enqueued(cls, name: str) -> "JobState":
        """The state of a job that is being enqueued now."""
        now = timestamp()
        return cls(name=name, status=Status.ACCEPT, created=now, updated=now, times={Queue.ACCEPT.value: now})

    def evolve(self, **changes: Any) -> "JobState":
        """A copy with these fields changed."""
        return self.model_copy(update=changes)


class JobView(BaseModel):
    """A job as `list` shows it."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    pool: str
    queue: Queue
    status: Status
    attempt: int
    created: str
    updated: str
    started: str | None
    ended: str | None
    error: JobError | None
    times: dict[str, str]

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
            pool=record.pool,
            queue=Queue(record.queue),
            **state.model_dump(exclude={"failures", "handler_errors"}),
        )
