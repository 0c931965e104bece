"""kill: end what runs, verify that nothing is left, and keep the driver's outcome if it was faster."""

import time

from orchestrator.handlers.actions import Action, Finish, Move, Release
from orchestrator.handlers.job import HeldJob
from orchestrator.handlers.verdict import verdict_of_attempt
from orchestrator.states import Status
from queues.documents import timestamp
from queues.operations import Set
from spark_runner.attempt import Attempt, AttemptState

_POLL_SECONDS = 1.0
_LEASE_MARGIN_SECONDS = 30.0


def handle(job: HeldJob) -> Action:
    """Close the attempt, after its driver is gone when it had started."""
    absent_since: float | None = None
    while True:
        job.claim.check()
        attempt = job.attempt()
        if attempt is None:
            return Finish(Status.CANCEL)
        runner = job.context.runner_at(job.place(attempt))
        match attempt.state:
            case AttemptState.INTENT:
                # First the node, so that a driver that is just starting ends at once; then the processes.
                return Move(Status.KILL, extra=(_killed(attempt),))
            case AttemptState.STARTED if runner is not None:
                runner.kill(attempt.run, grace_seconds=job.context.kill_grace)
                return Move(Status.KILL, extra=(_killed(attempt),))
            case AttemptState.STARTED:
                # A driver out of reach obeys the stop node by itself; one that never answers again is gone
                # for certain only when its lease is over.
                now = time.monotonic()
                alive = job.context.session.exists(attempt.alive) is not None
                absent_since = None if alive else (absent_since or now)
                limit = job.definition.timeout.lease + _LEASE_MARGIN_SECONDS
                if absent_since is not None and now - absent_since > limit:
                    return Move(Status.KILL, extra=(_killed(attempt),))
                if job.context.draining.is_set():
                    return Release()
                job.wait(_POLL_SECONDS)
            case _:
                if runner is not None:
                    runner.kill(attempt.run, grace_seconds=job.context.kill_grace)
                return _ended(job, attempt)


def _ended(job: HeldJob, attempt: Attempt) -> Action:
    verdict = verdict_of_attempt(attempt)
    if job.state.status is Status.CANCEL:  # stopped while it waited for its next attempt
        return Finish(Status.CANCEL)
    if verdict.status is Status.KILL:
        never_ran = not attempt.incarnation
        times = {"started": attempt.document.get("started"), "ended": attempt.document.get("ended")}
        return Finish(Status.CANCEL if never_ran else Status.KILL, changes=times)
    return Move(verdict.status, changes={"error": verdict.error})


def _killed(attempt: Attempt) -> Set:
    return attempt.advance(AttemptState.KILLED, ended=timestamp())
