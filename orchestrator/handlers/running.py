"""running: the driver is submitted and watched, and its end becomes a verdict.

A worker that adopts the job and the worker that made the intent act alike: the attempt node and the backend
decide, never the memory of this worker.
"""

from collections.abc import Sequence

from loguru import logger

from orchestrator.handlers import submission, supervision
from orchestrator.handlers.actions import Action, Keep, Release, SetStatus, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.liveness import killed
from orchestrator.handlers.notices import alongside
from orchestrator.handlers.polls import find_submissions
from orchestrator.handlers.verdict import move_by, verdict_of_attempt
from orchestrator.model.states import Status
from spark_runner.protocol.attempt import Attempt, AttemptState, application_in
from spark_runner.runners.base import Runner, RunState, Submission

_SETTLE_SECONDS = 20.0  # the time of Spark to shut down after the outcome
_OBEY_SECONDS = 5.0  # the time of a driver to see that its attempt was given up, and to end by itself
_SETTLE_LOOK_SECONDS = 0.1
_ANY = 1_000_000  # no limit: each job of a host without a worker can be followed here


def handle(job: JobContext) -> Action:
    """Take the next step of the attempt, or wait; deliver its events meanwhile."""
    return alongside(job, _look(job))


def _look(job: JobContext) -> Action:
    job.reads.read(job.stop_path, job.attempt_path, *submission.first_read(job))
    is_stopped = job.is_stopped()
    if is_stopped and (step := _obey(job)) is not None:
        return step
    attempt = job.attempt()
    if attempt is None:
        return SetStatus(Status.ACCEPT)
    if attempt.state.is_open:
        return _follow(job, attempt, is_stopped=is_stopped)
    return (
        (None if job.is_unsent(attempt) else _settle(job, attempt))
        or submission.again(job, attempt)
        or move_by(attempt, verdict_of_attempt(attempt), **_seen(job, attempt))
    )


def _obey(job: JobContext) -> Action | None:
    """The step after a request to stop; None where the driver ends by itself, after its micro-batch."""
    if not job.stops_gracefully:
        return SetStatus(Status.KILL, job.current_monitor().seen())
    is_noted = job.stop_act is None or job.stop_act in job.state.actions
    return None if is_noted else Keep()  # the transition adds the act to the record


def _follow(job: JobContext, attempt: Attempt, *, is_stopped: bool) -> Action:
    monitor = job.current_monitor()
    monitor.follow(attempt.run, job.context.drivers.runners.at(job.place(attempt)))
    if monitor.runner is None and (left := _left_to_its_host(job, attempt)) is not None:
        return left
    if not job.is_followed:
        job.is_followed = True
        _note_adoption(job, attempt)
    if attempt.state is AttemptState.STARTED:
        return supervision.look(job, attempt, monitor)
    if is_stopped:  # a driver that starts now has this step refused, and ends by itself later
        return SetStatus(Status.KILL, monitor.seen(), extra=(killed(attempt),))
    return submission.look(job, attempt, monitor)


def _note_adoption(job: JobContext, attempt: Attempt) -> None:
    """Log that this worker follows a driver that it has not started, or that it had lost with its session."""
    if job.begun == attempt.number:
        return
    begun_by, this_one = job.state.worker, job.claim.root.owner
    what = "the driver" if attempt.state is AttemptState.STARTED else "the start"
    job.is_adopted, adopted = begun_by != this_one, job.context.adopted
    if not job.is_adopted or attempt.run in adopted:
        logger.info("holds {} of {}, attempt {}, again", what, job.id, attempt.number)
        return
    adopted.add(attempt.run)
    far = "" if job.current_monitor().runner else ": it is out of reach, and followed in ZooKeeper alone"
    source = f"from worker {begun_by}" if begun_by else "from an earlier worker"
    logger.info("adopted {} of {}, attempt {}, {}{}", what, job.id, attempt.number, source, far)


def _left_to_its_host(job: JobContext, attempt: Attempt) -> Release | None:
    """Release a job whose driver only the workers of its host can see and stop, while such workers exist.

    They also count its driver against their slots: a watcher here would let them start too many.
    """
    hosts, place, pool = job.context.admission.hosts, job.place(attempt), job.claim.record.pool
    if not hosts.has_worker(place, pool):
        return None
    need = f"{pool} on {place} {place.store}"
    job.context.admission.elsewhere.add(job.id, need, lambda: 0 if hosts.has_worker(place, pool) else _ANY)
    return Release()


def _is_over(attempt: Attempt, found: Sequence[Submission]) -> bool:
    """Whether no process of an ended attempt is left to wait for, or to end."""
    if attempt.state is not AttemptState.LOST:
        return all(submission.state is not RunState.RUNNING for submission in found)
    # The end of a silent driver may be unobserved: it must not wake up beside the next attempt.
    return bool(found) and all(each.is_end_observed and not each.may_run for each in found)


def _seen(job: JobContext, attempt: Attempt) -> dict[str, object]:
    named = application_in(attempt.document)
    return job.current_monitor().seen() | ({} if named is None else {"application_id": named})


def _settle(job: JobContext, attempt: Attempt) -> Wait | None:
    """Wait for the end of the processes of an ended attempt, and end them after a limit."""
    runner, monitor = job.context.drivers.runners.at(job.place(attempt)), job.current_monitor()
    if runner is None:
        return None
    found = find_submissions(job, runner, attempt.run)
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
