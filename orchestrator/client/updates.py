"""One job from now to its end: an update at each change of its state or of what it does."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.admin.job_monitor import JobMonitor, JobSnapshot
from orchestrator.client.progress import describe_job
from orchestrator.model.errors import WaitTimeout

_LOOK_SECONDS = 2.0  # the interval at which drivers report progress; a watch reports changes of the record


@dataclass(frozen=True, slots=True)
class JobUpdate(JobSnapshot):
    """A job at one moment: its state, what its driver does, its failed attempts, and what it waits for."""

    def __str__(self) -> str:
        """The state, and what the job does or waits for, in one line."""
        return describe_job(self.job, self.progress, self.waiting)


def updates(monitor: JobMonitor, job_id: str, timeout: float | None = None) -> Iterator[JobUpdate]:
    """An update now and at each change, the ended job as the last.

    Raises WaitTimeout after `timeout` seconds, ItemNotFound, CorruptRecord, and the errors of reads.
    """
    wake, left = threading.Event(), time_left(timeout)
    last: tuple[object, str] | None = None
    while True:
        found = monitor.look(wake.set)
        update = JobUpdate(found.job, found.progress, found.failed, found.waiting)
        if (seen := (update.job, str(update))) != last:
            last = seen
            yield update
        if update.job.is_final:
            return
        if not (seconds := min(left(), _LOOK_SECONDS)) > 0:  # NaN fails every comparison
            raise WaitTimeout(f"job {job_id!r} has not ended after {timeout:g} s; it is still {update}")
        wake.wait(seconds)
        wake.clear()


def time_left(timeout: float | None) -> Callable[[], float]:
    """The seconds that are left of a time from now on; without a limit they never end."""
    if timeout is None:
        return lambda: float("inf")
    deadline = time.monotonic() + timeout
    return lambda: deadline - time.monotonic()
