"""An attempt that no driver has taken yet: it is submitted, and submitted again after accidents."""

import uuid
from collections.abc import Sequence

from orchestrator.backoff import jittered
from orchestrator.errors import CorruptHistory, DefinitionError, HistoryNotFound
from orchestrator.handlers import supervision
from orchestrator.handlers.actions import Action, Keep, Move, Wait
from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import age
from orchestrator.handlers.reported import reported_error
from orchestrator.handlers.verdict import Verdict, error_of, move_by
from orchestrator.models.job import JobError
from orchestrator.short_jobs import is_short
from orchestrator.states import Status
from orchestrator.submit_request import submit_request
from queues.documents import timestamp
from queues.operations import Set
from queues.session import SessionSettings
from spark_runner import exit_codes
from spark_runner.attempt import Attempt, AttemptState
from spark_runner.errors import RefusedSubmission, SubmissionError
from spark_runner.runners.base import Runner, RunState, Submission

_MAX_ACCIDENTS = 5  # of one attempt, as long as no driver comes to take it
# No verdict on the job: ZooKeeper was away before the driver could take the attempt, or the attempt was meant
# for the driver of another submission, which never came.
_ACCIDENTS = {exit_codes.NO_CONTACT, exit_codes.SUPERSEDED}
_ROOM_SECONDS = 1.0  # until it is asked again whether the host has room
_LOOK_SECONDS = 30.0  # if neither a watch nor a poll tells anything before


def look(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action:
    """Submit it, or wait for the driver to take it, or give it up."""
    runner = monitor.runner
    if runner is None:
        # Nothing has run, and nobody here can tell whether anything ever will: the attempt is closed, so
        # that a late driver ends at once, and the job starts again with an attempt of its own.
        return Move(Status.ACCEPT, extra=(_closed(attempt),))
    submissions = job.submissions(runner, attempt.run)
    if submissions is None:
        return _unanswered(job, attempt, monitor)
    accidents = all(s.state is RunState.GONE or s.exit_code in _ACCIDENTS for s in submissions)
    if accidents and max(len(submissions), monitor.submitted) < _MAX_ACCIDENTS:
        # Whoever was here before may have submitted and died without a trace of it: the second driver then
        # finds the attempt taken and ends with 75.
        if (short := _no_room(job)) is not None:
            told = supervision.tell(job, monitor, f"no driver is started for it: {short}")
            return _too_late(job, attempt, monitor) or told or Wait(_ROOM_SECONDS)
        return _start(job, attempt, runner, is_first=not submissions) or _wait(job, attempt)
    if any(submission.may_run for submission in submissions):
        told = supervision.tell(job, monitor, supervision.trouble(job, monitor))
        return _too_late(job, attempt, monitor) or told or _wait(job, attempt)
    # Every submission has ended and none took the attempt, unless one did so in this very moment: then the
    # compare-and-set below is refused and all is looked at again.
    return _ended_early(attempt, submissions)


def _no_room(job: JobContext) -> str | None:
    """Why this host has no room for the driver, None when it has: accept asked for the first submission."""
    guard = job.context.admission.guard
    if guard is None or _is_ours_alone(job, 0):
        return None
    try:
        return guard.admit(job.run_key, job.spark)
    except RefusedSubmission:  # by rules that this worker alone has: the submission says so
        return None


def _unanswered(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action:
    """What comes of a backend that does not say whether anything was submitted."""
    if _is_ours_alone(job, 0):
        backend = job.place(attempt).backend
        words = monitor.backend.unknown_reason or f"the backend {backend} does not answer"
        error = JobError(error_class="submission", type="Unreachable", message=words)
        return _give_up(attempt, error, unsent=True)
    told = supervision.tell(job, monitor, supervision.trouble(job, monitor))
    return _too_late(job, attempt, monitor) or told or _wait(job, attempt)


def _is_ours_alone(job: JobContext, submitted: int) -> bool:
    """Whether nobody has submitted the present attempt but this worker, and that so often."""
    return job.begun == job.state.attempt and job.current_monitor().submitted == submitted


def _ended_early(attempt: Attempt, submissions: Sequence[Submission]) -> Move:
    last = submissions[-1] if submissions else None
    if last is None:  # the cluster has forgotten each of them
        message = f"it was submitted {_MAX_ACCIDENTS} times, and each time nothing is known of it any more"
        return _give_up(attempt, JobError(error_class="submission", message=message))
    if last.failure is None:
        reason = last.detail or "see its logs"
        message = f"the driver ended before it began, with exit code {last.exit_code}: {reason}"
        return _fail(attempt, JobError(error_class="submission", message=message))
    error = error_of(last.failure)
    if error.error_class == "killed":
        ended = attempt.advance(AttemptState.KILLED, ended=timestamp(), error=error.model_dump())
        return move_by(attempt, Verdict.of_error(error), ended)
    return _give_up(attempt, error) if last.failure.is_passing else _fail(attempt, error)


def _wait(job: JobContext, attempt: Attempt) -> Wait:
    return Wait(min(_LOOK_SECONDS, max(0.0, _left(job, attempt))))


def _left(job: JobContext, attempt: Attempt) -> float:
    return job.definition.timeout.submit - age(job, attempt, job.current_monitor())


def _start(job: JobContext, attempt: Attempt, runner: Runner, *, is_first: bool) -> Action | None:
    if not job.has_login(attempt):
        # Whoever announced the attempt had the password, and nobody else has it.
        return Keep(extra=attempt.renewed(job.new_login(attempt.run)))
    job.current_monitor().note_submission()
    return _submit(job, attempt, runner, is_first=is_first)


def _submit(job: JobContext, attempt: Attempt, runner: Runner, *, is_first: bool) -> Action | None:
    hooks, state = job.context.reporting.hooks, job.state
    try:
        request = submit_request(
            job.definition,
            job.plan(),
            job.spark,
            attempt,
            job_id=job.id,
            pool=job.claim.record.pool,
            incarnation=uuid.uuid4().hex,
            stop_path=job.stop_path,
            zookeeper=_driver_settings(job, attempt),
            is_short=_is_short(job),
            # What has failed with others in one JVM, for whatever reason, gets one of its own.
            is_warm=job.spark.start == "warm" and job.state.attempt == 1 and is_first,
            policy=job.context.rules.policy,
        )
        hooks.fire(lambda hook: hook.before_submit(job.id, state, attempt.run))
        runner.submit(request)
    except (DefinitionError, RefusedSubmission) as error:
        return _fail(attempt, _error("definition", error))
    except SubmissionError as error:
        return _give_up(attempt, _error("submission", error), unsent=_is_ours_alone(job, 1))
    finally:
        job.give_back()
    hooks.fire(lambda hook: hook.after_submit(job.id, state, attempt.run))
    return None


def _driver_settings(job: JobContext, attempt: Attempt) -> SessionSettings:
    """How the driver reaches ZooKeeper: with its own login, and what it makes there is the worker's too."""
    session = job.context.session
    owners = () if job.login is None else session.owners(attempt.path)
    return job.context.drivers.access.settings(session.settings, job.login, owners)


def _is_short(job: JobContext) -> bool:
    """Whether a quick start is worth more to this job than a JVM for long work."""
    start, history = job.spark.start, job.context.reporting.history
    if start not in {"", "auto"} or history is None:
        return start in {"fast", "warm"}
    try:
        return is_short(history.read(job.definition.name))
    except (HistoryNotFound, CorruptHistory):
        return False


def _too_late(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action | None:
    if _left(job, attempt) > 0:
        return None
    limit = job.definition.timeout.submit
    words = supervision.trouble(job, monitor)
    reason = f": {words}" if words else ""
    message = f"no driver has taken the attempt within timeout.submit ({limit:g} s){reason}"
    error = JobError(error_class="submission", type="SubmitTimeout", message=message)
    return _give_up(attempt, error)


def _give_up(attempt: Attempt, error: JobError, *, unsent: bool = False) -> Move:
    # First the node, so that a driver that is just starting ends at once; then what is left of it. Where
    # nothing was sent nothing can be left, and a cluster that is away need not come back to say so.
    changes = {"unsent": attempt.number} if unsent else {}
    closed = _closed(attempt, error, passing=True)
    return Move(Status.RUNNING, changes=changes, extra=(closed,))


def later(job: JobContext, error: JobError) -> Move | None:
    """Back to accept after a delay, with the reason; None when no tries of `retry.submissions` are left."""
    retry, failed = job.definition.retry, job.state.submissions + 1
    if failed >= retry.submissions:
        return None
    delay = jittered(retry.delay_after(failed))
    return Move(Status.ACCEPT, changes={"submissions": failed, "error": error}, delay=delay)


def again(job: JobContext, attempt: Attempt) -> Move | None:
    """Back to accept after a while, if the attempt was given up for a passing reason and tries are left."""
    if attempt.state is not AttemptState.CLOSED or not attempt.is_passing:
        return None
    return later(job, reported_error(attempt.document.get("error"), attempt.state))


def _fail(attempt: Attempt, error: JobError) -> Move:
    closed = _closed(attempt, error)
    return move_by(attempt, Verdict(Status.ERROR_FAIL, error), closed)


def _closed(attempt: Attempt, error: JobError | None = None, *, passing: bool = False) -> Set:
    reason = None if error is None else error.model_dump()
    return attempt.closed(ended=timestamp(), error=reason, passing=passing)


def _error(error_class: str, error: Exception) -> JobError:
    return JobError(error_class=error_class, message=str(error), type=type(error).__name__)
