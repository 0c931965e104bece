"""A job as users see it: the view of its record."""

from dataclasses import fields

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.model.act import Act
from orchestrator.model.job import CallbackState, JobError, JobState, Undelivered, state_of
from orchestrator.model.states import FINAL, Queue, Status
from queues import CorruptRecord, Record

UNREADABLE = "unreadable"
"""The error class in the view of a record that cannot be read."""


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
    worker: str = ""  # the worker that began the last attempt
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
    labels: dict[str, str] = {}  # the searchable ones; `job show` has those of the definition

    def __str__(self) -> str:
        """The id and the status; `repr` has all fields."""
        return f"job {self.id}: {self.status}"

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
        """The view of a record; raises CorruptRecord."""
        state = state_of(record)
        shared = {name: getattr(state, name) for name in _SHARED}  # not `to_payload`: a list has thousands
        try:
            queue = Queue(record.queue)
        except ValueError as error:
            raise CorruptRecord(record.id, f"it is not that of a job: {error}") from error
        # The state is valid: to validate it again would take a tenth of the time of a list.
        return cls.model_construct(
            id=record.id, run_key=record.run_key, pool=record.pool, queue=queue, **shared
        )


_SHARED = tuple(field.name for field in fields(JobState) if field.name in JobView.model_fields)
