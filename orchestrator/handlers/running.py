"""running: the driver is submitted, watched, and its end becomes a verdict.

A worker that adopts the job and the worker that made the intent do the same: what the attempt node and the
backend say decides what is done next, never what this worker remembers. Each call is one look.
"""

from collections.abc import Sequence

from orchestrator.handlers import submission, supervision
from orchestrator.handlers.actions import Action, Move, Release, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.notices import alongside
from orchestrator.handlers.verdict import move_by, verdict_of_attempt
from orchestrator.states import Status
from spark_runner.attempt import Attempt, AttemptState, application_in
from spark_runner.runners.base import Runner, RunState, Submission

_SETTLE_SECONDS = 20.0  # how long Spark may take to shut down after the outcome
_OBEY_SECONDS = 5.0  # until a driver has seen that its attempt was given up, and ends by itself
_SETTLE_LOOK_SECONDS = 0.1
_ANY = 1_000_000  # of the jobs of a host without a worker each can be followed here


def handle(job: JobContext) -> Action:
    """Bring the attempt on, or say until when there is nothing to do; tell what is to be told meanwhile."""
    return alongside(job, _look(job))


def _look(job: JobContext) -> Action:
    if job.is_stopped():
        return Move(Status.KILL, job.current_monitor().seen())
    attempt = job.attempt()
    if attempt is None:
        return Move(Status.ACCEPT)
    if not attempt.state.is_open:
        return (
            (None if job.is_unsent(attempt) else _settle(job, attempt))
            or submission.again(job, attempt)
            or move_by(attempt, verdict_of_attempt(attempt), **_seen(job, attempt))
        )
    monitor = job.current_monitor()
    monitor.follow(attempt.run, job.context.drivers.runners.at(job.place(attempt)))
    if monitor.runner is None and (left := _left_to_its_host(job, attempt)) is not None:
        return left
    if attempt.state is AttemptState.INTENT:
        return submission.look(job, attempt, monitor)
    return supervision.look(job, attempt, monitor)


def _left_to_its_host(job: JobContext, attempt: Attempt) -> Release | None:
    """Let go of a job whose driver only the workers of its host can see and stop, as long as there are some.

    They count its driver among their own, too: who watched it from here would have them start too much.
    """
    hosts, place, pool = job.context.admission.hosts, job.place(attempt), job.claim.record.pool
    if not hosts.has_worker(place, pool):
        return None
    need = f"{pool} on {place} {place.store}"
    job.context.admission.elsewhere.add(job.id, need, lambda: 0 if hosts.has_worker(place, pool) else _ANY)
    return Release()


def _is_over(attempt: Attempt, found: Sequence[Submission]) -> bool:
    """Whether nothing of an ended attempt is to be waited for, or ended."""
    if attempt.state is not AttemptState.LOST:
        return all(submission.state is not RunState.RUNNING for submission in found)
    # Nobody may have seen the end of one that was silent for too long: it must not wake up beside the next.
    return bool(found) and all(each.is_end_observed and not each.may_run for each in found)


def _seen(job: JobContext, attempt: Attempt) -> dict[str, object]:
    named = application_in(attempt.document)
    return job.current_monitor().seen() | ({} if named is None else {"application_id": named})


def _settle(job: JobContext, attempt: Attempt) -> Wait | None:
    """Wait until the processes of an ended attempt have ended, and end them if they do not."""
    runner, monitor = job.context.drivers.runners.at(job.place(attempt)), job.current_monitor()
    if runner is None:
        return None
    found = job.submissions(runner, attempt.run)
    if found is not None and _is_over(attempt, found):
        return None
    ended_by_itself = attempt.state in {AttemptState.SUCCEEDED, AttemptState.FAILED}
    if monitor.seconds_settling() < (_SETTLE_SECONDS if ended_by_itself else _OBEY_SECONDS):
        return Wait(_SETTLE_LOOK_SECONDS)
    return _end_driver(job, attempt, runner)


def _end_driver(job: JobContext, attempt: Attempt, runner: Runner) -> Wait | None:
    """None when nothing of the driver is left; before that, one call on a thread for long work.

    Raises the errors of `Runner.kill`.
    """
    monitor = job.current_monitor()
    if not monitor.ends_driver:
        monitor.ask_slow_thread()
        return Wait(0)
    runner.kill(attempt.run, grace_seconds=job.context.drivers.kill_grace)
    return None
