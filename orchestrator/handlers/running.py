"""running: the driver is submitted, watched, and its end becomes a verdict.

A worker that adopts the job and the worker that made the intent do the same: what the attempt node and the
backend say decides what is done next, never what this worker remembers.
"""

import time
import uuid

from orchestrator.errors import DefinitionError
from orchestrator.handlers.actions import Action, Move, Release
from orchestrator.handlers.job import HeldJob
from orchestrator.handlers.verdict import Verdict, verdict_of_attempt, verdict_of_exit
from orchestrator.models.job import JobError
from orchestrator.plan import submit_request
from orchestrator.states import Status
from queues.documents import timestamp
from queues.operations import Operation
from spark_runner import exit_codes
from spark_runner.attempt import Attempt, AttemptState
from spark_runner.errors import SubmissionError
from spark_runner.runners.base import Runner, RunState, Submission
from spark_runner.sql.errors import SqlError

_POLL_SECONDS = 1.0  # how often backend and stop node are asked; the driver's end is watched
_LEASE_MARGIN_SECONDS = 30.0  # a driver may need so long to notice that its lease is over
_MAX_SUBMISSIONS = 5  # of one attempt, as long as none comes to take it
_SETTLE_SECONDS = 20.0  # how long Spark may take to shut down after the outcome


def handle(job: HeldJob) -> Action:
    """Follow the attempt until there is a verdict, the worker drains, or somebody asks to stop."""
    absence = _Absence(job)
    while True:
        job.claim.check()
        if job.is_stopped():
            return Move(Status.KILL)
        attempt = job.attempt()
        if attempt is None:
            return Move(Status.ACCEPT)
        if not attempt.state.is_open:
            _settle(job, attempt)
            return _move(attempt, verdict_of_attempt(attempt))
        if job.context.draining.is_set():
            return Release()
        runner = job.context.runner_at(job.place(attempt))
        action = _step(job, attempt, runner) or absence.check(attempt)
        if action is not None:
            return action
        job.wait(_POLL_SECONDS)


def _step(job: HeldJob, attempt: Attempt, runner: Runner | None) -> Action | None:
    if attempt.state is AttemptState.INTENT:
        if runner is None:
            # Nothing has run, and nobody here can tell whether anything ever will: the attempt is closed, so
            # that a late driver ends at once, and the job starts again with an attempt of its own.
            return Move(Status.ACCEPT, extra=(attempt.advance(AttemptState.CLOSED, ended=timestamp()),))
        return _submit_or_wait(job, attempt, runner)
    # A driver that this worker cannot reach: the attempt node and `alive` tell.
    return None if runner is None else _look_at_exit(attempt, runner)


def _submit_or_wait(job: HeldJob, attempt: Attempt, runner: Runner) -> Action | None:
    submissions = runner.find(attempt.run)
    # No verdict on the job: ZooKeeper was away, or this host was, before the driver could take the attempt.
    accidents = all(s.state is RunState.GONE or s.exit_code == exit_codes.NO_CONTACT for s in submissions)
    if accidents and len(submissions) < _MAX_SUBMISSIONS:
        # Whoever was here before may have submitted and died without a trace of it: the second driver then
        # finds the attempt taken and ends with 75.
        try:
            request = submit_request(
                job.definition,
                attempt,
                incarnation=uuid.uuid4().hex,
                stop_path=job.stop_path,
                zookeeper=job.context.session.settings,
            )
            runner.submit(request)
        except (SqlError, DefinitionError) as error:
            kind = type(error).__name__
            return _close(attempt, JobError(error_class="definition", message=str(error), type=kind))
        except SubmissionError as error:
            return _close(
                attempt, JobError(error_class="submission", message=str(error), type="SubmissionError")
            )
        return None
    if any(submission.state in {RunState.RUNNING, RunState.UNKNOWN} for submission in submissions):
        return None
    # Every submission has ended and none took the attempt, unless one did so in this very moment: then the
    # compare-and-set below is refused and all is looked at again.
    last = submissions[-1]
    reason = last.detail or "see its logs"
    message = f"the driver ended before it began, with exit code {last.exit_code}: {reason}"
    return _close(attempt, JobError(error_class="submission", message=message))


def _close(attempt: Attempt, error: JobError) -> Move:
    closed = attempt.advance(AttemptState.CLOSED, ended=timestamp(), error=error.model_dump())
    return _move(attempt, Verdict(Status.ERROR_FAIL, error), closed)


def _look_at_exit(attempt: Attempt, runner: Runner) -> Action | None:
    submission = _started_submission(runner, attempt)
    if submission is None or submission.state in {RunState.RUNNING, RunState.UNKNOWN}:
        return None
    # The driver is gone. Had it recorded its outcome, the compare-and-set is refused and that outcome read.
    verdict, ended = verdict_of_exit(attempt, submission)
    return _move(attempt, verdict, ended)


def _started_submission(runner: Runner, attempt: Attempt) -> Submission | None:
    # Only the incarnation that took the attempt can tell how it ended.
    for submission in runner.find(attempt.run):
        if submission.incarnation == attempt.incarnation:
            return submission
    return None


def _settle(job: HeldJob, attempt: Attempt) -> None:
    """Wait until the driver's processes have ended, and end them if they do not."""
    runner = job.context.runner_at(job.place(attempt))
    if runner is None:
        return
    deadline = time.monotonic() + _SETTLE_SECONDS
    while any(submission.state is RunState.RUNNING for submission in runner.find(attempt.run)):
        if time.monotonic() > deadline:
            runner.kill(attempt.run, grace_seconds=job.context.kill_grace)
            return
        job.wait(0.1)


def _move(attempt: Attempt, verdict: Verdict, *extra: Operation) -> Move:
    changes = {"started": attempt.document.get("started"), "ended": timestamp(), "error": verdict.error}
    return Move(verdict.status, changes=changes, extra=tuple(extra))


class _Absence:
    """A started attempt without its `alive` for longer than the lease is lost; by our own monotonic clock."""

    def __init__(self, job: HeldJob) -> None:
        self._job = job
        self._since: float | None = None

    def check(self, attempt: Attempt) -> Action | None:
        job = self._job
        if attempt.state is not AttemptState.STARTED or job.context.session.exists(attempt.alive) is not None:
            self._since = None
            return None
        now = time.monotonic()
        if self._since is None:
            self._since = now
        limit = job.definition.timeout.lease + _LEASE_MARGIN_SECONDS
        if now - self._since < limit:
            return None
        runner = job.context.runner_at(job.place(attempt))
        if runner is not None:  # stopped or hung, and within reach: it must not wake up beside the next one
            runner.kill(attempt.run, grace_seconds=job.context.kill_grace)
        message = f"its driver has shown no life for {now - self._since:.0f} s, longer than its lease"
        error = JobError(error_class="lost", message=message)
        lost = attempt.advance(AttemptState.LOST, ended=timestamp(), error=error.model_dump())
        return _move(attempt, Verdict(Status.ERROR_FAIL, error), lost)
