"""Noting an ended attempt in the history of its name, before the job leaves the queue of its outcome."""

from loguru import logger

from orchestrator.handlers.job import HeldJob
from orchestrator.handlers.verdict import verdict_of_attempt
from orchestrator.history.run import is_run, run_of
from orchestrator.models.spark import Spark
from queues.errors import OutcomeUnknown, SessionLost, Unreachable
from spark_runner.attempt import AttemptState
from spark_runner.errors import RefusedSubmission


def remember(job: HeldJob) -> None:
    """Note the last attempt once; whoever does it again after a crash changes nothing.

    An attempt that has ended never changes, so neither claim nor fence is needed. When ZooKeeper is away that
    is raised, as by all that a handler does; nothing else of the history keeps a job from going on.
    """
    history, state = job.context.history, job.state
    if history is None or state.attempt in {0, job.remembered}:
        return
    attempt = job.attempt()
    if attempt is None or not is_run(attempt):
        return
    # Who was ended for its time limit says `killed`; why stands in the record.
    error = state.error if attempt.state is AttemptState.KILLED else verdict_of_attempt(attempt).error
    try:
        run = run_of(attempt, job_id=job.id, spark=_spark(job), error=error)
        history.record(job.definition.name, run)
    except (OutcomeUnknown, SessionLost, Unreachable):
        raise
    except Exception as error_of_ours:  # noqa: BLE001 - a history is not worth a job
        logger.opt(exception=error_of_ours).warning(
            "{} is not in the history: {}", attempt.run, error_of_ours
        )
    job.remembered = state.attempt


def _spark(job: HeldJob) -> Spark:
    try:
        return job.spark
    except RefusedSubmission:  # the defaults of its pool have been changed since, and do not fit
        return job.definition.spark
