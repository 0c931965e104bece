"""A started attempt: its driver's exit, its absence, its limits in time, and what is strange about it."""

import math
import time

from orchestrator.handlers.absence import absence, lost, with_application
from orchestrator.handlers.actions import Action, Move, Wait
from orchestrator.handlers.ending import end_driver
from orchestrator.handlers.job import TIME_LIMIT, HeldJob, Watch
from orchestrator.handlers.verdict import Verdict, move_by, verdict_of_exit
from orchestrator.handlers.warnings import rest_seconds
from orchestrator.models.job import JobError
from orchestrator.states import Status
from queues.documents import encode, timestamp
from queues.operations import Create, Operation, Set
from spark_runner.attempt import Attempt
from spark_runner.runners.base import Runner, RunState, Submission

_LOOK_SECONDS = 60.0  # if nothing wakes the job before: a lost watch hides a change for so long at most
_LOOKS_PER_LEASE = 4  # so that the absence of a driver is seen soon after it begins
_CALM_SECONDS = 60.0  # after a warning: a backend that answers now and then would cost two writes each time
_STALLED_LOOK_SECONDS = 5.0  # how soon new progress ends a warning


def look(job: HeldJob, attempt: Attempt, watch: Watch) -> Action:
    """A verdict when the driver is gone, a warning when something is strange, else wait."""
    left = absence(job, attempt, watch)
    attempt = with_application(attempt, watch)
    if watch.runner is not None and (action := _exit(job, attempt, watch.runner)) is not None:
        return action
    if left is not None and left <= 0:
        return _lost(job, attempt, watch)
    run_left = _run_left(job, attempt)
    if run_left <= 0:
        return _over_limit(job, watch)
    warning, stall_left = _warning(job, watch)
    if (told := tell(job, watch, warning)) is not None:
        return told
    often = min(_LOOK_SECONDS, job.definition.timeout.lease / _LOOKS_PER_LEASE)
    return Wait(min(often, run_left, stall_left, math.inf if left is None else left))


def tell(job: HeldJob, watch: Watch, warning: str | None) -> Move | None:
    """The step that brings a warning into the record, or out of it; None where it says so already."""
    state, now = job.state, time.monotonic()
    told = state.warning if state.status is Status.RUNNING_WARN else None
    if told is not None and warning not in {None, told} and now < watch.told_at + rest_seconds(warning, told):
        return None
    watch.waited_for = watch.waits_for
    if warning is None:
        if state.status is not Status.RUNNING_WARN:
            return None
        watch.calm_until = now + _CALM_SECONDS
        return Move(Status.RUNNING, changes={"warning": None, **_seen(watch)})
    if warning == told:
        return None
    watch.told_at = now
    return Move(Status.RUNNING_WARN, changes={"warning": warning, **_seen(watch)})


def _exit(job: HeldJob, attempt: Attempt, runner: Runner) -> Action | None:
    submission = _started_submission(job, attempt, runner)
    if submission is None or submission.may_run:
        return None
    # The driver is gone. Had it recorded its outcome, the compare-and-set is refused and that outcome read.
    verdict, ended = verdict_of_exit(attempt, submission)
    return move_by(attempt, verdict, ended, **_seen(job.watching()))


def _started_submission(job: HeldJob, attempt: Attempt, runner: Runner) -> Submission | None:
    # Only the incarnation that took the attempt can tell how it ended.
    submissions = job.submissions(runner, attempt.run)
    for submission in submissions or ():
        if submission.incarnation == attempt.incarnation:
            return submission
    is_forgotten = submissions is not None and not job.place(attempt).host
    if is_forgotten and job.context.session.exists(attempt.alive) is None:
        # A cluster that knows nothing of a driver that had begun has removed it, with its node perhaps.
        message = "its cluster knows nothing of its driver any more"
        return Submission(attempt.run, attempt.incarnation, RunState.GONE, detail=message)
    return None


def _lost(job: HeldJob, attempt: Attempt, watch: Watch) -> Action:
    # Stopped or hung: where it is within reach, it must not wake up beside the next one.
    if watch.runner is not None and (wait := end_driver(job, attempt, watch.runner)) is not None:
        return wait
    error, closed = lost(job, attempt)
    return move_by(attempt, Verdict(Status.ERROR_FAIL, error), closed)


def _run_left(job: HeldJob, attempt: Attempt) -> float:
    limit = job.definition.timeout.run
    return limit - (job.context.clock.now_ms() - attempt.changed_ms) / 1000 if limit else math.inf


def _over_limit(job: HeldJob, watch: Watch) -> Move:
    limit = job.definition.timeout.run
    message = f"it ran for longer than timeout.run ({limit:g} s)"
    error = JobError(error_class="timeout", type="RunTimeout", message=message)
    extra: tuple[Operation, ...] = ()
    if watch.runner is None:  # a driver out of reach obeys the stop node
        request = encode({"run_key": job.run_key, "since": timestamp(), "reason": TIME_LIMIT})
        found = job.context.session.get(job.stop_path)
        if found is None:
            extra = (Create(job.stop_path, request),)
        elif job.run_key.encode() not in found[0]:  # left from an earlier job of this id: nobody obeys it
            extra = (Set(job.stop_path, request, found[1].version),)
    return Move(Status.KILL, changes={"error": error, "warning": None, **_seen(watch)}, extra=extra)


def _warning(job: HeldJob, watch: Watch) -> tuple[str | None, float]:
    """Why the job is RUNNING_WARN, None when it is not, and the seconds until that may change by itself."""
    stall_left, limit = math.inf, job.definition.timeout.stall
    if limit:
        stall_left = limit - (time.monotonic() - watch.progress_since)
    if words := trouble(job, watch):
        return words, stall_left if stall_left > 0 else math.inf
    if stall_left <= 0:
        return f"no progress for longer than timeout.stall ({limit:g} s)", _STALLED_LOOK_SECONDS
    return None, stall_left


def trouble(job: HeldJob, watch: Watch) -> str | None:
    """What its backend says is in the way of its driver, or that it says nothing; None when all is well."""
    if watch.unknown >= job.context.limits().warn_after and time.monotonic() >= watch.calm_until:
        reason = f": {watch.unknown_reason}" if watch.unknown_reason else ""
        return f"its backend does not say how it is{reason}"
    return watch.waits_for or None


def _seen(watch: Watch) -> dict[str, object]:
    seen: dict[str, object] = {
        "last_seen": watch.last_seen,
        "polls": watch.polls,
        "unknown_answers": watch.unknown,
    }
    if watch.application_id is not None:
        seen["application_id"] = watch.application_id
    return seen
