"""kill: end the driver, verify its end, and keep the outcome of a driver that was faster."""

from orchestrator.handlers.actions import Action, Keep, SetStatus, Wait
from orchestrator.handlers.conclude import conclude
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import absence, killed, observed_end, with_application
from orchestrator.handlers.record_run import record_run
from orchestrator.handlers.verdict import verdict_of_attempt
from orchestrator.model.states import Status
from orchestrator.model.times import stored_time
from spark_runner.protocol.attempt import VERSION_STARTED, Attempt, AttemptState, application_in
from spark_runner.runners.base import Runner

_LOOK_SECONDS = 1.0  # for a driver out of reach, which ends by itself
_UNSEEN_LOOK_SECONDS = 15.0  # for a driver that its cluster does not list: each call requests its end again


def handle(job: JobContext) -> Action:
    """Close the attempt; one that has started, after the end of its driver."""
    attempt = job.attempt()
    if attempt is None:
        return conclude(job, Status.CANCEL)
    runner = job.context.drivers.runners.at(job.place(attempt))
    match attempt.state:
        case AttemptState.INTENT:
            # The node first, so that a driver that starts now ends at once; then the processes.
            return SetStatus(Status.KILL, extra=(killed(attempt),))
        case AttemptState.STARTED if runner is not None:
            return _end(job, attempt, runner)
        case AttemptState.STARTED:
            # A driver out of reach obeys the stop node by itself; one that never answers again has ended
            # for certain only after its lease.
            left = absence(job, attempt, job.current_monitor())
            if left is not None and left <= 0:
                return SetStatus(
                    Status.KILL, extra=(killed(with_application(attempt, job.current_monitor())),)
                )
            # A stop node older than the login of the driver is not readable for the driver.
            stop = job.request_to_stop(attempt) if attempt.login else ()
            return Keep(extra=stop) if stop else Wait(_LOOK_SECONDS)
        case _:
            if runner is not None and not job.is_unsent(attempt):
                runner.kill(attempt.run, grace_seconds=job.context.drivers.kill_grace)
            return _ended(job, attempt)


def _end(job: JobContext, attempt: Attempt, runner: Runner) -> Action:
    left = absence(job, attempt, job.current_monitor())  # first: `alive` ends with the driver
    runner.kill(attempt.run, grace_seconds=job.context.drivers.kill_grace)
    if left is not None and left > 0 and observed_end(job, attempt, runner) is None:
        # Its cluster has ended every driver that it lists; this one may still run on a node that is cut off.
        return Wait(min(left, _UNSEEN_LOOK_SECONDS))
    return SetStatus(Status.KILL, extra=(killed(with_application(attempt, job.current_monitor())),))


def _ended(job: JobContext, attempt: Attempt) -> Action:
    verdict = verdict_of_attempt(attempt)
    state = job.state
    if state.status is Status.CANCEL:  # stopped while the job waited for its next attempt
        return conclude(job, Status.CANCEL)
    times = {name: stored_time(attempt.document.get(name)) for name in ("started", "ended")}
    if application_id := application_in(attempt.document):
        times["application_id"] = application_id
    if verdict.status is not Status.KILL:
        return SetStatus(verdict.status, changes={"error": verdict.error, **times})
    request = job.stop_request()
    is_asked = (request is not None and request[1]) or state.callback.attempts > 0
    if not is_asked and _may_be_retried(job):
        # Its time limit ended it, or an operator of its cluster: the handler of failures decides.
        extra = () if request is None else (request[0],)
        return SetStatus(Status.ERROR_FAIL, changes=times, extra=extra)
    record_run(job)
    never_ran = not attempt.incarnation and attempt.version <= VERSION_STARTED
    return conclude(job, Status.CANCEL if never_ran else Status.KILL, times)


def _may_be_retried(job: JobContext) -> bool:
    kind = None if job.state.error is None else job.state.error.error_class
    return kind == "timeout" or (kind == "killed" and kind in job.definition.retry.on)
