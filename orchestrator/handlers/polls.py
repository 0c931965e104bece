"""Answers of the backend about the submissions of a job."""

from collections.abc import Sequence

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.model.states import Status
from spark_runner.runners.base import Runner, Submission


def find_submissions(job: JobContext, runner: Runner, run: str) -> list[Submission] | None:
    """Every submission of a run as its backend reports it; None when the backend does not answer.

    An error of a backend is no error of the job: its handler decides about a long silence.
    """
    try:
        return runner.find(run)
    except Exception as error:  # noqa: BLE001 - a library of a backend may raise any error
        logger.debug("{}: the backend {} does not answer: {}", job.id, runner.backend, error)
        job.current_monitor().backend.note_silence(str(error))
        return None


def note_poll(job: JobContext, found: Sequence[Submission] | None, *, at: str, reason: str = "") -> None:
    """Record the answer of a backend at this time, None without one; a change wakes the job."""
    backend, warned = job.monitor.backend, job.monitor.warnings.waited_for
    if found is not None and backend.note_same(found, warned, at):
        return  # nearly always: it must cost little
    if backend.note_poll(
        found,
        at=at,
        reason=reason,
        is_warned=job.state.status is Status.RUNNING_WARN,
        warn_after=job.context.rules.limits().warn_after,
        waited_for=warned,
    ):
        job.wake()
