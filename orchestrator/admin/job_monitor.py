"""One job as a person follows it: its state, its driver, its failed attempts, and what it waits for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.admin.views import Views, decoded
from orchestrator.admin.waits import Waits
from orchestrator.model.job import state_of
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue
from orchestrator.model.waiting import Waiting
from queues import QueueSet, Record
from spark_runner.protocol.attempt import attempt_path

_SHOWN_ATTEMPTS = 5  # the last ones: a job may have hundreds


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job at one look."""

    job: JobView
    progress: Mapping[str, Any] | None = None  # as its driver reports it while it runs
    failed: Sequence[Mapping[str, Any]] = ()  # the last attempts before the current one, oldest first
    waiting: Waiting | None = None


class JobMonitor:
    """Reads one job again and again, little at each look. Used by one thread."""

    def __init__(self, queue_set: QueueSet, job_id: str) -> None:
        self._set, self._id = queue_set, job_id
        self._session = queue_set.session
        self._views = Views(queue_set)
        self._path = queue_set.layout.record(job_id)
        self._failed: tuple[tuple[str, int], Sequence[Mapping[str, Any]]] = (("", 0), ())

    def look(self, wake: Callable[[], None]) -> JobSnapshot:
        """The job now; the next change of its record calls `wake`.

        Raises ItemNotFound, CorruptRecord, and the errors of reads.
        """
        self._session.get(self._path, wake)
        record = self._set.get(self._id)
        job = JobView.of(record)
        progress = self._views.progress(job) if job.queue is Queue.RUNNING else None
        failed = self._failed_attempts(job)
        if job.is_final or progress is not None:
            return JobSnapshot(job, progress, failed)
        return JobSnapshot(job, progress, failed, self._waiting(record, job))

    def wait_connected(self, seconds: float) -> bool:
        """Wait until the connection is up; False if it is not after `seconds`; raises AccessDenied."""
        return self._session.wait_connected(seconds)

    def seconds_without_contact(self) -> float:
        """Seconds for which the connection has been down; 0 while it is up."""
        return self._session.seconds_without_contact()

    def on_outage(self, notify: Callable[[float], None]) -> None:
        """Call `notify` in a thread of the session when the connection is lost: reads wait for its return."""

        def changed() -> None:
            if seconds := self._session.seconds_without_contact():
                notify(seconds)

        self._session.on_change(changed)

    def _failed_attempts(self, job: JobView) -> Sequence[Mapping[str, Any]]:
        last = job.attempt if job.queue is Queue.ACCEPT else job.attempt - 1
        if self._failed[0] != (job.run_key, last):
            numbers = range(max(1, last - _SHOWN_ATTEMPTS + 1), last + 1)
            paths = [attempt_path(self._path, job.run_key, number) for number in numbers]
            found = zip(numbers, map(decoded, self._session.get_many(paths)), strict=True)
            # The number comes from the name of the node: a driver can write the document.
            failed = [{**document, "attempt": number} for number, document in found if document is not None]
            self._failed = ((job.run_key, last), failed)
        return self._failed[1]

    def _waiting(self, record: Record, job: JobView) -> Waiting | None:
        paths = [self._set.layout.lock(record.pool, self._id)]
        if job.attempt:
            paths.append(attempt_path(self._path, job.run_key, job.attempt))
        lock, *attempts = map(decoded, self._session.get_many(paths))
        attempt = attempts[0] if attempts else None
        return Waits(self._set).of(record, state_of(record), lock=lock, attempt=attempt)
