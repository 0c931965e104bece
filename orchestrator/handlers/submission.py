"""Submission: an attempt that no driver has taken is submitted, and again after accidents."""

import uuid
from collections.abc import Sequence

from orchestrator.handlers import packages, supervision
from orchestrator.handlers.actions import Action, Keep, SetStatus, Wait
from orchestrator.handlers.adjustments import pass_on_adjustment
from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import age
from orchestrator.handlers.polls import find_submissions
from orchestrator.handlers.positions import positions_before
from orchestrator.handlers.submit_request import is_short, submit_request
from orchestrator.handlers.verdict import Verdict, error_of, move_by, reported_error
from orchestrator.model.backoff import jittered
from orchestrator.model.errors import CorruptHistory, DefinitionError, HistoryNotFound
from orchestrator.model.job import JobError
from orchestrator.model.paths import Nodes
from orchestrator.model.plan import plan_path
from orchestrator.model.states import Status
from queues import LOW_LANE_SUFFIX, SessionSettings, Set, timestamp
from spark_runner.protocol import exit_codes
from spark_runner.protocol.adjustment_node import adjustment_path
from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.runners.base import Runner, RunState, Submission

_MAX_ACCIDENTS = 5  # of one attempt, until a driver takes it
# No verdict on the job: ZooKeeper was unreachable before the driver took the attempt, or the attempt was
# meant for the driver of another submission, which never started.
_ACCIDENTS = {exit_codes.NO_CONTACT, exit_codes.SUPERSEDED}
_MEMORY_CHECK_SECONDS = 1.0  # until the next check of the memory of this host
_LOOK_SECONDS = 30.0  # unless a watch or a poll wakes the job earlier


def first_read(job: JobContext) -> Sequence[str]:
    """The nodes to read ahead for an attempt: those of its submission, or the sign of life of its driver."""
    if not _is_ours_alone(job, 0):
        alive = f"{job.attempt_path}/alive"
        return [alive] if job.has_definition else [alive, job.definition_path]
    nodes, name = Nodes(job.context.layout.root), job.definition.name
    paths = [nodes.position(name), adjustment_path(job.attempt_path), nodes.adjustment(name)]
    paths += [nodes.history(name)] if job.context.reporting.history is not None else []
    return [*paths, plan_path(job.record_path)] if job.definition.script else paths


def look(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action:
    """Submit it, or wait for the driver to take it, or give it up."""
    runner = monitor.runner
    if runner is None:
        # No driver has run, and this worker cannot detect a later one: the attempt is closed, so that a
        # late driver ends at once, and the job starts again with a new attempt.
        return SetStatus(Status.ACCEPT, extra=(_closed(attempt),))
    submissions = find_submissions(job, runner, attempt.run)
    if submissions is None:
        return _unanswered(job, attempt, monitor)
    accidents = all(s.state is RunState.GONE or s.exit_code in _ACCIDENTS for s in submissions)
    if accidents and max(len(submissions), monitor.submitted) < _MAX_ACCIDENTS:
        # The previous worker may have submitted and died without a trace of it: the second driver then finds
        # the attempt taken and ends with exit code 75.
        if (short := _memory_shortage(job)) is not None:
            warned = supervision.record_warning(job, monitor, f"no driver is started for it: {short}")
            return _too_late(job, attempt, monitor) or warned or Wait(_MEMORY_CHECK_SECONDS)
        return _start(job, attempt, runner, is_first=not submissions) or _wait(job, attempt)
    if any(submission.may_run for submission in submissions):
        warned = supervision.record_warning(job, monitor, supervision.trouble(job, monitor))
        return _too_late(job, attempt, monitor) or warned or _wait(job, attempt)
    # Every submission has ended and none took the attempt. If one takes it at this moment, the
    # compare-and-set below is refused, and the handler runs again.
    return _ended_early(attempt, submissions)


def _memory_shortage(job: JobContext) -> str | None:
    """Why this host has no memory for the driver, None when it has; `accept` checks it before the first."""
    guard = job.context.admission.guard
    if guard is None or _is_ours_alone(job, 0):
        return None
    try:
        return guard.admit(job.run_key, job.sized_spark)
    except RefusedSubmission:  # by rules that only this worker has: the submission reports it
        return None


def _unanswered(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action:
    """The action while the backend does not answer whether anything was submitted."""
    if _is_ours_alone(job, 0):
        backend = job.place(attempt).backend
        message = monitor.backend.unknown_reason or f"the backend {backend} does not answer"
        error = JobError(error_class="submission", type="Unreachable", message=message)
        return _give_up(attempt, error, unsent=True)
    warned = supervision.record_warning(job, monitor, supervision.trouble(job, monitor))
    return _too_late(job, attempt, monitor) or warned or _wait(job, attempt)


def _is_ours_alone(job: JobContext, submitted: int) -> bool:
    """Whether only this worker has submitted the present attempt, and exactly so many times."""
    return job.begun == job.state.attempt and job.current_monitor().submitted == submitted


def _ended_early(attempt: Attempt, submissions: Sequence[Submission]) -> SetStatus:
    last = submissions[-1] if submissions else None
    if last is None:  # the cluster lists none of them any more
        message = (
            f"it was submitted {_MAX_ACCIDENTS} times, and its backend lists none of the submissions any more"
        )
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
        # Only the worker that announced the attempt had the password.
        return Keep(extra=attempt.renewed(job.new_login(attempt.run)))
    job.current_monitor().note_submission()
    return _submit(job, attempt, runner, is_first=is_first)


def _submit(job: JobContext, attempt: Attempt, runner: Runner, *, is_first: bool) -> Action | None:
    hooks, state, pool = job.context.reporting.hooks, job.state, job.claim.record.pool
    try:
        request = submit_request(
            job.definition,
            job.plan(),
            job.sized_spark,
            attempt,
            job_id=job.id,
            created=state.created,
            pool=pool,
            incarnation=uuid.uuid4().hex,
            stop_path=job.stop_path,
            zookeeper=_driver_settings(job, attempt),
            is_short=_is_short(job),
            # A job that failed in a shared JVM, for any reason, gets its own JVM.
            is_warm=job.spark.start == "warm" and job.state.attempt == 1 and is_first,
            policy=job.context.rules.policy,
            references=job.context.rules.references,
            connector_jars=job.context.rules.connector_jars,
            functions=job.context.rules.functions,
            quarantine=job.context.rules.quarantine,
            checkpoints=job.context.rules.checkpoints,
            event_logs=job.context.rules.event_logs,
            installation=job.context.rules.installations.of(pool.removesuffix(LOW_LANE_SUFFIX)),
            delivered=positions_before(job, attempt),
            environment=packages.environment(job, job.sized_spark),
        )
        pass_on_adjustment(job, attempt)
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
    """The settings of the driver for ZooKeeper: its own login, and nodes that the worker owns too."""
    session = job.context.session
    owners = () if job.login is None else session.owners(attempt.path)
    return job.context.drivers.access.settings(session.settings, job.login, owners)


def _is_short(job: JobContext) -> bool:
    """Whether the job gains more from a quick start than from a JVM for long work."""
    start, history = job.spark.start, job.context.reporting.history
    if start not in {"", "auto"} or history is None:
        return start in {"fast", "warm"}
    try:
        return is_short(history.read(job.definition.name, job.reads.get))
    except (HistoryNotFound, CorruptHistory):
        return False


def _too_late(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action | None:
    if _left(job, attempt) > 0:
        return None
    limit = job.definition.timeout.submit
    trouble = supervision.trouble(job, monitor)
    reason = f": {trouble}" if trouble else ""
    message = f"no driver has taken the attempt within timeout.submit ({limit:g} s){reason}"
    error = JobError(error_class="submission", type="SubmitTimeout", message=message)
    return _give_up(attempt, error)


def _give_up(attempt: Attempt, error: JobError, *, unsent: bool = False) -> SetStatus:
    # The node first, so that a driver that starts now ends at once; then its processes. Where nothing was
    # sent there are none, and the handler need not wait for a cluster that is unreachable.
    changes = {"unsent": attempt.number} if unsent else {}
    closed = _closed(attempt, error, passing=True)
    return SetStatus(Status.RUNNING, changes=changes, extra=(closed,))


def later(job: JobContext, error: JobError) -> SetStatus | None:
    """Back to accept after a delay, with the reason; None when no tries of `retry.submissions` are left."""
    retry, failed = job.definition.retry, job.state.submissions + 1
    if failed >= retry.submissions:
        return None
    delay = jittered(retry.delay_after(failed))
    return SetStatus(Status.ACCEPT, changes={"submissions": failed, "error": error}, delay=delay)


def again(job: JobContext, attempt: Attempt) -> SetStatus | None:
    """Back to accept after a delay, if the attempt was given up for a passing reason and tries are left."""
    if attempt.state is not AttemptState.CLOSED or not attempt.is_passing:
        return None
    return later(job, reported_error(attempt.document.get("error"), attempt.state))


def _fail(attempt: Attempt, error: JobError) -> SetStatus:
    closed = _closed(attempt, error)
    return move_by(attempt, Verdict(Status.ERROR_FAIL, error), closed)


def _closed(attempt: Attempt, error: JobError | None = None, *, passing: bool = False) -> Set:
    reason = None if error is None else error.model_dump()
    return attempt.closed(ended=timestamp(), error=reason, passing=passing)


def _error(error_class: str, error: Exception) -> JobError:
    return JobError(error_class=error_class, message=str(error), type=type(error).__name__)
