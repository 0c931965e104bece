"""The liveness of an attempt: the node `alive` against the driver's lease, and the age of its state."""

import time
from dataclasses import replace

from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.polls import find_submissions
from orchestrator.model.job import JobError
from orchestrator.model.times import moment, seconds_between
from queues import AccessDenied, NodeData, Set, decode, timestamp
from spark_runner.protocol.attempt import Attempt, AttemptState, application_in
from spark_runner.runners.base import Runner, Submission

_LEASE_MARGIN_SECONDS = 30.0  # a driver may need so long to notice the end of its lease


def absence(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> float | None:
    """Seconds until the attempt counts as lost, None while its driver keeps `alive`; by CLOCK_BOOTTIME."""
    found = _alive(job, attempt)
    if found is not None and note_alive(monitor, found):
        return None
    return absence_limit(job) - monitor.life.note_absent()


def note_alive(monitor: AttemptMonitor, found: NodeData) -> bool:
    """Record the node `alive`; False for a persistent node, which outlives its driver and proves nothing."""
    data, stat = found
    if stat.owner:
        monitor.life.note_alive(stat.modified, _application_id(data))
    return bool(stat.owner)


def _alive(job: JobContext, attempt: Attempt) -> NodeData | None:
    try:
        return job.reads.get(attempt.alive)
    except AccessDenied:  # a driver that closes it to its worker counts as absent
        return None


def observed_end(job: JobContext, attempt: Attempt, runner: Runner) -> Submission | None:
    """How the incarnation that took the attempt ended, where its backend observed the end; else None.

    A cluster that does not list a driver proves no end: it may still run on a node that is cut off.
    """
    for found in find_submissions(job, runner, attempt.run) or ():
        if found.incarnation == attempt.incarnation:
            return found if found.is_end_observed and not found.may_run else None
    return None


def with_application(attempt: Attempt, monitor: AttemptMonitor) -> Attempt:
    """The attempt with the application id that `alive` has shown, also for a driver that left no outcome."""
    application_id = monitor.life.application_id
    if application_id is None or application_in(attempt.document):
        return attempt
    return replace(attempt, document={**attempt.document, "application_id": application_id})


def _application_id(data: bytes) -> str | None:
    try:
        return application_in(decode(data)) if data else None
    except ValueError:  # perhaps written by an operator
        return None


def absence_limit(job: JobContext) -> float:
    """Seconds without `alive` after which no driver of the attempt can run."""
    return job.definition.timeout.lease + _LEASE_MARGIN_SECONDS


def lost(job: JobContext, attempt: Attempt) -> Set:
    """The compare-and-set that marks the attempt as lost, with the reason."""
    silent = round(absence_limit(job))
    message = f"its driver has shown no life for {silent} s, longer than its lease"
    error = JobError(error_class="lost", message=message)
    return attempt.advance(
        AttemptState.LOST, ended=timestamp(), error=error.model_dump(), silent_seconds=silent
    )


def ran_seconds(attempt: Attempt) -> float:
    """How long an ended attempt has run for certain.

    The time needs two witnesses: the clocks of the hosts that wrote the attempt, and that of the ensemble.
    The shorter time counts, without the silence after which a driver counts as lost.
    """
    by_hosts = seconds_between(attempt.document.get("started"), attempt.document.get("ended")) or 0.0
    by_ensemble = (attempt.changed_ms - attempt.created_ms) / 1000
    silent = attempt.document.get("silent_seconds")
    silence = float(silent) if isinstance(silent, int | float) and silent > 0 else 0.0
    return max(0.0, min(by_hosts, by_ensemble) - silence)


def killed(attempt: Attempt) -> Set:
    """The compare-and-set that ends the attempt on request."""
    return attempt.advance(AttemptState.KILLED, ended=timestamp())


def age(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> float:
    """Seconds since the attempt was announced, or has started, as far as that is certain.

    Time that this worker has observed counts by CLOCK_BOOTTIME alone. Earlier time needs two witnesses: the
    ensemble's clock, and the clocks of the hosts that wrote the attempt and read it. The shorter time counts,
    so that no wrong clock ends a running attempt: an adopted attempt may get its limit a second time.
    """
    return monitor.age.seconds(attempt.state, lambda: _age_at_first_sight(job, attempt))


def _age_at_first_sight(job: JobContext, attempt: Attempt) -> float:
    written = attempt.document.get("created" if attempt.state is AttemptState.INTENT else "started")
    if (at := moment(written)) is None:
        return 0.0
    by_hosts = time.time() - at.timestamp()
    by_ensemble = (job.context.clock.confirmed_ms() - attempt.changed_ms) / 1000
    return max(0.0, min(by_hosts, by_ensemble))
