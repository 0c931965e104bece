"""Supervision of a started attempt: the exit and the absence of its driver, time limits, and warnings."""

import math

from orchestrator.handlers.actions import Action, SetStatus, Wait
from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import (
    absence,
    absence_limit,
    age,
    lost,
    observed_end,
    with_application,
)
from orchestrator.handlers.notices import with_warning
from orchestrator.handlers.record_run import record_hour
from orchestrator.handlers.verdict import move_by, verdict_of_exit
from orchestrator.handlers.warnings import rest_seconds
from orchestrator.model.job import JobError
from orchestrator.model.mode_limits import run_limit, stall_limit
from orchestrator.model.states import Status
from queues import Operation
from spark_runner.protocol.attempt import Attempt

_LOOK_SECONDS = 60.0  # unless the job is woken earlier: a lost watch hides a change no longer than this
_LOOKS_PER_LEASE = 4  # so that the absence of a driver is noticed soon
_CALM_SECONDS = 60.0  # after a warning: an intermittent backend would cost two writes each time
_STALLED_LOOK_SECONDS = 5.0  # until new progress ends a warning
_CONTRADICTION_LOOK_SECONDS = (
    0.5  # between an end at its backend and `alive`, which lasts as long as the session
)
_SILENCE_SECONDS = 60.0  # of a driver, before the warning; a new session takes less


def look(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> Action:
    """A verdict when the driver has ended, a warning when it is silent or stalled, else wait."""
    left = absence(job, attempt, monitor)
    attempt = with_application(attempt, monitor)
    ended = None if monitor.runner is None else observed_end(job, attempt, monitor.runner)
    if ended is not None and left is not None:
        # If the driver has recorded its outcome, the compare-and-set is refused, and that outcome is read.
        verdict, closed = verdict_of_exit(attempt, ended)
        return move_by(attempt, verdict, closed, **monitor.seen())
    if left is not None and left <= 0:
        return _lost(job, attempt)
    run_left = _run_left(job, attempt, monitor)
    if run_left <= 0:
        return _over_limit(job, attempt, monitor)
    warning, stall_left = _warning(job, monitor, left)
    if (step := record_warning(job, monitor, warning)) is not None:
        return step
    often = min(_LOOK_SECONDS, job.definition.timeout.lease / _LOOKS_PER_LEASE)
    if (
        ended is not None
    ):  # its session has not expired, or its backend is wrong: its own outcome has priority
        often = _CONTRADICTION_LOOK_SECONDS
    if left is not None:
        return Wait(min(often, run_left, stall_left, left))
    handled_in = min(run_left, stall_left, record_hour(job, attempt))
    has_trouble = ended is not None or monitor.runner is None or not monitor.backend.is_well
    is_calm = job.state.status is Status.RUNNING and not has_trouble
    return Wait(min(often, handled_in), calm_seconds=handled_in if is_calm else 0.0)


def record_warning(job: JobContext, monitor: AttemptMonitor, warning: str | None) -> SetStatus | None:
    """The step that writes a warning into the record, or removes it; None where the record is right."""
    state = job.state
    stored = state.warning if state.status is Status.RUNNING_WARN else None
    if (
        stored is not None
        and warning not in {None, stored}
        and monitor.warnings.is_recent(rest_seconds(warning, stored))
    ):
        return None
    monitor.warnings.note_decision(monitor.backend.waits_for)
    if warning is None:
        if state.status is not Status.RUNNING_WARN:
            return None
        monitor.warnings.note_withdrawn(_CALM_SECONDS)
        return SetStatus(Status.RUNNING, changes={"warning": None, **monitor.seen()})
    if warning == stored:
        return None
    monitor.warnings.note_written()
    return SetStatus(Status.RUNNING_WARN, changes=with_warning(job, {"warning": warning, **monitor.seen()}))


def _lost(job: JobContext, attempt: Attempt) -> SetStatus:
    # The node first: a driver that wakes up ends at once, and the next handler sees the reason. Processes
    # within reach are ended before the next attempt, as for each ended attempt.
    return SetStatus(Status.RUNNING, changes=job.current_monitor().seen(), extra=(lost(job, attempt),))


def _run_left(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> float:
    limit = run_limit(job.definition.timeout, job.state.mode)
    return limit - age(job, attempt, monitor) if limit else math.inf


def _over_limit(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> SetStatus:
    limit = run_limit(job.definition.timeout, job.state.mode)
    message = f"it ran for longer than timeout.run ({limit:g} s)"
    error = JobError(error_class="timeout", type="RunTimeout", message=message)
    extra: tuple[Operation, ...] = ()
    if monitor.runner is None:  # a driver out of reach obeys the stop node
        extra = job.request_to_stop(attempt)
    return SetStatus(Status.KILL, changes={"error": error, "warning": None, **monitor.seen()}, extra=extra)


def _warning(job: JobContext, monitor: AttemptMonitor, left: float | None) -> tuple[str | None, float]:
    """The warning, None without one, and the seconds until it may change by itself.

    `left` is the result of `absence`.
    """
    stall_left, limit = math.inf, stall_limit(job.definition.timeout, job.state.trigger_seconds)
    if limit:
        stall_left = limit - monitor.life.seconds_without_progress()
    if message := trouble(job, monitor):
        return message, stall_left if stall_left > 0 else math.inf
    if left is not None and left < (absence_limit(job) - _SILENCE_SECONDS):
        message = f"its driver shows no life: after {absence_limit(job):.0f} s of that it counts as lost"
        return message, math.inf
    if stall_left <= 0:
        return f"no progress for longer than timeout.stall ({limit:g} s)", _STALLED_LOOK_SECONDS
    return None, stall_left


def trouble(job: JobContext, monitor: AttemptMonitor) -> str | None:
    """Why its backend does not start the driver, or that the backend is silent; None without trouble."""
    backend = monitor.backend
    if backend.unknown >= job.context.rules.limits().warn_after and not monitor.warnings.is_calm:
        reason = f": {backend.unknown_reason}" if backend.unknown_reason else ""
        return f"its backend does not report its state{reason}"
    return backend.waits_for or None
