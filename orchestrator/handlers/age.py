"""For how long an attempt has been what it is: what its limits in time are compared with."""

import time

from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.job_context import JobContext
from orchestrator.times import moment
from queues.session import boottime
from spark_runner.attempt import Attempt, AttemptState


def age(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> float:
    """Seconds since the attempt was announced, or has started, as far as that is certain.

    What this worker has seen of it counts by CLOCK_BOOTTIME alone. For what was before, two have to say so:
    the ensemble's clock, and those of the hosts that wrote the attempt and read it. The shorter time counts,
    so that no clock that is wrong ends what runs: an adopted attempt may get a second time what it had.
    """
    now = boottime()
    if (
        monitor.aged is not attempt.state
    ):  # not its version: a driver can write its attempt as often as it likes
        monitor.aged, monitor.aged_since = attempt.state, now - _age_at_first_sight(job, attempt)
    return now - monitor.aged_since


def _age_at_first_sight(job: JobContext, attempt: Attempt) -> float:
    written = attempt.document.get("created" if attempt.state is AttemptState.INTENT else "started")
    if (at := moment(written)) is None:
        return 0.0
    by_hosts = time.time() - at.timestamp()
    by_ensemble = (job.context.clock.confirmed_ms() - attempt.changed_ms) / 1000
    return max(0.0, min(by_hosts, by_ensemble))
