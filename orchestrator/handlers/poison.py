"""Poison jobs: a job whose handling ends its worker again and again moves to dead."""

from orchestrator.handlers.actions import DeadLetter
from orchestrator.handlers.job_context import JobContext
from orchestrator.model.job import JobError
from orchestrator.model.states import Queue
from queues import Set, timestamp
from spark_runner.protocol.attempt import Attempt, AttemptState

MAX_CLAIMS = 10
"""Claims in one queue that ended without a release and without a step that made progress."""


def dead_letter_of(job: JobContext) -> DeadLetter | None:
    """The action for a job that was claimed too often; None while it may continue.

    No handler follows a driver in dead: while one may run there is no limit, and claims while one ran do not
    count. An intent is closed in the same multi, so that no driver starts.
    """
    claims, queue = job.claim.record.claims, Queue(job.claim.queue)
    if claims <= MAX_CLAIMS:
        return None
    message = f"it was claimed {claims} times in {queue} without progress"
    reason = JobError(error_class="handler", type="TooManyClaims", message=message)
    attempt = job.last_attempt()
    if attempt is None:
        return DeadLetter(reason)
    match attempt.state:
        case AttemptState.INTENT:
            return DeadLetter(reason, extra=(_closed(job, attempt, reason),))
        case AttemptState.STARTED:
            return None
        case _:
            has_run = job.state.status.queue is Queue.RUNNING and bool(attempt.incarnation)
            return None if has_run else DeadLetter(reason)


def _closed(job: JobContext, attempt: Attempt, reason: JobError) -> Set:
    if job.state.status.queue is Queue.KILL:
        return attempt.advance(AttemptState.KILLED, ended=timestamp())
    # A replay from dead starts it anew: nothing has run.
    return attempt.closed(ended=timestamp(), error=reason.model_dump(), passing=True)
