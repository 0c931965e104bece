"""A job that ends the workers that handle it, each time anew: to dead with it, unless its driver may run."""

from orchestrator.handlers.actions import Bury
from orchestrator.handlers.job_context import JobContext
from orchestrator.models.job import JobError
from orchestrator.states import Queue
from queues.documents import timestamp
from queues.operations import Set
from spark_runner.attempt import Attempt, AttemptState

MAX_CLAIMS = 10
"""Claims in one queue that nobody let go of in order, and without a step but for words."""


def burial(job: JobContext) -> Bury | None:
    """What becomes of a job that was claimed too often; None while it may go on.

    Nobody looks after a driver in dead: where one may run there is no limit, and where one has run the claims
    of that time count for nothing. An intent is closed in the same multi, so that no driver begins.
    """
    claims, stands_in = job.claim.record.claims, Queue(job.claim.queue)
    if claims <= MAX_CLAIMS:
        return None
    words = f"it was claimed {claims} times in {stands_in} and nothing came of it"
    reason = JobError(error_class="handler", type="TooManyClaims", message=words)
    attempt = job.last_attempt()
    if attempt is None:
        return Bury(reason)
    match attempt.state:
        case AttemptState.INTENT:
            return Bury(reason, extra=(_closed(job, attempt, reason),))
        case AttemptState.STARTED:
            return None
        case _:
            has_run = job.state.status.queue is Queue.RUNNING and bool(attempt.incarnation)
            return None if has_run else Bury(reason)


def _closed(job: JobContext, attempt: Attempt, reason: JobError) -> Set:
    if job.state.status.queue is Queue.KILL:
        return attempt.advance(AttemptState.KILLED, ended=timestamp())
    # Whoever brings it back from dead starts it anew: nothing has run.
    return attempt.closed(ended=timestamp(), error=reason.model_dump(), passing=True)
