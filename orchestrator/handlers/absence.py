"""A started attempt whose `alive` is away: given up when that lasts longer than the driver's lease."""

import time

from orchestrator.handlers.job import HeldJob, Watch
from orchestrator.models.job import JobError
from queues.documents import timestamp
from queues.operations import Set
from spark_runner.attempt import Attempt, AttemptState

_LEASE_MARGIN_SECONDS = 30.0  # a driver may need so long to notice that its lease is over


def absence(job: HeldJob, attempt: Attempt, watch: Watch) -> float | None:
    """Seconds until the attempt counts as lost, None while its driver shows life; by our own clock."""
    stat = job.context.session.exists(attempt.alive)
    if stat is not None:
        watch.absent_since = None
        if stat.modified != watch.progress:
            watch.progress, watch.progress_since = stat.modified, time.monotonic()
        return None
    if watch.absent_since is None:
        watch.absent_since = time.monotonic()
    limit = job.definition.timeout.lease + _LEASE_MARGIN_SECONDS
    return limit - (time.monotonic() - watch.absent_since)


def lost(job: HeldJob, attempt: Attempt) -> tuple[JobError, Set]:
    """Why it counts as lost, and the compare-and-set that says so."""
    limit = job.definition.timeout.lease + _LEASE_MARGIN_SECONDS
    message = f"its driver has shown no life for {limit:.0f} s, longer than its lease"
    error = JobError(error_class="lost", message=message)
    return error, attempt.advance(AttemptState.LOST, ended=timestamp(), error=error.model_dump())
