"""A started attempt: its driver's exit, its absence, its limits in time, and what is strange about it."""

import math

from orchestrator.handlers.actions import Action, Move, Wait
from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import (
    absence,
    age,
    limit_of_absence,
    lost,
    observed_end,
    with_application,
)
from orchestrator.handlers.outbox import with_warning
from orchestrator.handlers.verdict import move_by, verdict_of_exit
from orchestrator.handlers.warnings import rest_seconds
from orchestrator.models.job import JobError
from orchestrator.states import Status
from queues.operations import Operation
from spark_runner.attempt import Attempt

_LOOK_SECONDS = 60.0  # if nothing wakes the job before: a lost watch hides a change for so long at most
_LOOKS_PER_LEASE = 4  # so that the absence of a driver is seen soon after it begins
_CALM_SECONDS = 60.0  # after a warning: a backend that answers now and then would cost two writes each time
_STALLED_LOOK_SECONDS = 5.0  # how soon new progress ends a warning
_CONTRADICTION_LOOK_SECONDS = 0.5  # of an end at its backend and `alive`, which goes with the session
_SILENCE_SECONDS = 60.0  # of a driver, until people are told; a new session is made in less


def look(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action:
    """A verdict when the driver is gone, a warning when something is strange, else wait."""
    left = absence(job, attempt, monitor)
    attempt = with_application(attempt, monitor)
    ended = None if monitor.runner is None else observed_end(job, attempt, monitor.runner)
    if ended is not None and left is not None:
        # Had the driver recorded its outcome, the compare-and-set is refused and that outcome read.
        verdict, closed = verdict_of_exit(attempt, ended)
        return move_by(attempt, verdict, closed, **monitor.seen())
    if left is not None and left <= 0:
        return _lost(job, attempt)
    run_left = _run_left(job, attempt, monitor)
    if run_left <= 0:
        return _over_limit(job, attempt, monitor)
    warning, stall_left = _warning(job, monitor, left)
    if (told := tell(job, monitor, warning)) is not None:
        return told
    often = min(_LOOK_SECONDS, job.definition.timeout.lease / _LOOKS_PER_LEASE)
    if ended is not None:  # its session has not expired, or its backend is wrong: its own word goes first
        often = _CONTRADICTION_LOOK_SECONDS
    return Wait(min(often, run_left, stall_left, math.inf if left is None else left))


def tell(job: JobContext, monitor: AttemptMonitor, warning: str | None) -> Move | None:
    """The step that brings a warning into the record, or out of it; None where it says so already."""
    state = job.state
    told = state.warning if state.status is Status.RUNNING_WARN else None
    if (
        told is not None
        and warning not in {None, told}
        and monitor.warnings.is_recent(rest_seconds(warning, told))
    ):
        return None
    monitor.warnings.note_decision(monitor.backend.waits_for)
    if warning is None:
        if state.status is not Status.RUNNING_WARN:
            return None
        monitor.warnings.note_withdrawn(_CALM_SECONDS)
        return Move(Status.RUNNING, changes={"warning": None, **monitor.seen()})
    if warning == told:
        return None
    monitor.warnings.note_written()
    return Move(Status.RUNNING_WARN, changes=with_warning(job, {"warning": warning, **monitor.seen()}))


def _lost(job: JobContext, attempt: Attempt) -> Move:
    # First the node: a driver that wakes up ends at once, and whoever goes on sees why. What of it is within
    # reach is ended before the next attempt, as of each attempt that has ended.
    return Move(Status.RUNNING, changes=job.current_monitor().seen(), extra=(lost(job, attempt),))


def _run_left(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> float:
    limit = job.definition.timeout.run
    return limit - age(job, attempt, monitor) if limit else math.inf


def _over_limit(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Move:
    limit = job.definition.timeout.run
    message = f"it ran for longer than timeout.run ({limit:g} s)"
    error = JobError(error_class="timeout", type="RunTimeout", message=message)
    extra: tuple[Operation, ...] = ()
    if monitor.runner is None:  # a driver out of reach obeys the stop node
        extra = job.request_to_stop(attempt)
    return Move(Status.KILL, changes={"error": error, "warning": None, **monitor.seen()}, extra=extra)


def _warning(job: JobContext, monitor: AttemptMonitor, left: float | None) -> tuple[str | None, float]:
    """Why the job is RUNNING_WARN, None when it is not, and the seconds until that may change by itself.

    `left` is what `absence` says.
    """
    stall_left, limit = math.inf, job.definition.timeout.stall
    if limit:
        stall_left = limit - monitor.life.seconds_without_progress()
    if words := trouble(job, monitor):
        return words, stall_left if stall_left > 0 else math.inf
    if left is not None and left < (limit_of_absence(job) - _SILENCE_SECONDS):
        words = f"its driver shows no life: after {limit_of_absence(job):.0f} s of that it counts as lost"
        return words, math.inf
    if stall_left <= 0:
        return f"no progress for longer than timeout.stall ({limit:g} s)", _STALLED_LOOK_SECONDS
    return None, stall_left


def trouble(job: JobContext, monitor: AttemptMonitor) -> str | None:
    """What its backend says is in the way of its driver, or that it says nothing; None when all is well."""
    backend = monitor.backend
    if backend.unknown >= job.context.rules.limits().warn_after and not monitor.warnings.is_calm:
        reason = f": {backend.unknown_reason}" if backend.unknown_reason else ""
        return f"its backend does not say how it is{reason}"
    return backend.waits_for or None
