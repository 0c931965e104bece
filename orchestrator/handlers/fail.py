"""fail: a retry after a delay, a demotion to the low lane after `timeout.run`, or the end as ERROR_FAIL."""

from orchestrator.handlers.actions import Action, DeadLetter, SetStatus
from orchestrator.handlers.conclude import conclude, with_history
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import ran_seconds
from orchestrator.handlers.notices import with_running
from orchestrator.handlers.record_run import record_run
from orchestrator.model.backoff import jittered
from orchestrator.model.job import CallbackState, JobError
from orchestrator.model.mode_limits import reset_after
from orchestrator.model.states import Status
from queues import LOW_LANE_SUFFIX, Create, Delete, Operation

_MIN_DEMOTION_SECONDS = (
    1.0  # so that it is released: held, it would start before the jobs that wait in its pool
)


def handle(job: JobContext) -> Action:
    """Retry while attempts are left, `retry.on` has the class of the error, and no stop is requested.

    The transition out of this queue counts the failure: once, however often this handler runs.
    """
    record_run(job)
    state, definition = job.state, job.definition
    error = state.error or JobError(error_class="lost", message="the job failed and recorded no reason")
    if error.error_class == "timeout" and error.type == "QueuedTimeout":
        return conclude(job, Status.ERROR_FAIL)  # no attempt has failed
    failed = {"failures": _failures_before(job) + 1}
    is_reporting = state.callback.attempts > 0 and not state.callback.done
    is_demoted = error.error_class == "timeout" and definition.timeout.on_run == "demote"
    if is_reporting or not (is_demoted or _is_retried(job, error, failed["failures"])):
        return conclude(job, Status.ERROR_FAIL, failed)
    if state.callback.stopped or job.is_stopped():
        # A receiver whose answer made it a failure gets no second call about a cancellation. A driver that
        # was to end after its micro-batch has failed to.
        return (
            conclude(job, Status.ERROR_FAIL, failed)
            if state.callback.done or job.stops_gracefully
            else SetStatus(Status.CANCEL, failed)
        )
    if is_demoted:
        return _demoted(job, error)
    delay = jittered(definition.retry.delay_after(failed["failures"]))
    changes = with_history(job, {**failed, "callback": CallbackState()})
    return SetStatus(Status.ACCEPT, with_running(job, changes), delay=delay)


def _failures_before(job: JobContext) -> int:
    """The failed attempts in a row before this one: a stable attempt clears those before it."""
    stable = reset_after(job.definition.retry, job.state.mode)
    attempt = job.last_attempt() if stable and job.state.failures else None
    return 0 if attempt is not None and ran_seconds(attempt) >= stable else job.state.failures


def _is_retried(job: JobContext, error: JobError, failures: int) -> bool:
    retry = job.definition.retry
    if failures >= retry.attempts:
        return False
    if error.error_class == "timeout":
        return job.definition.timeout.on_run == "retry"
    return error.error_class in retry.on


def _demoted(job: JobContext, error: JobError) -> Action:
    """Move to the low lane; a demotion has its own counter and is no failure."""
    demotions, retry, pool = job.state.demotions + 1, job.definition.retry, job.claim.record.pool
    if demotions > retry.attempts:
        message = f"{error.message}, after {retry.attempts} demotions to the low lane (retry.attempts)"
        return DeadLetter(JobError(error_class=error.error_class, type=error.type, message=message))
    delay = max(_MIN_DEMOTION_SECONDS, jittered(retry.delay_after(demotions)))
    stale = job.stop_request()
    # Stop nodes are stored by pool: one created meanwhile refuses this step, and the next try reads it.
    alone: tuple[Operation, ...] = (Create(job.stop_path), Delete(job.stop_path))
    extra = alone if stale is None else (stale[0],)
    changes = with_history(job, {"demotions": demotions, "callback": CallbackState()})
    lane = pool if pool.endswith(LOW_LANE_SUFFIX) else f"{pool}{LOW_LANE_SUFFIX}"
    return SetStatus(Status.ACCEPT, with_running(job, changes), extra, delay=delay, pool=lane)
