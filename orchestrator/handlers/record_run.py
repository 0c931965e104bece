"""Records an ended attempt in the history of its job name."""

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.verdict import verdict_of_attempt
from orchestrator.history.history import is_run, run_of
from orchestrator.model.spark import Spark
from queues import OutcomeUnknown, SessionLost, Unreachable
from spark_runner.protocol.attempt import AttemptState
from spark_runner.protocol.errors import RefusedSubmission


def record_run(job: JobContext) -> None:
    """Record the last attempt once, before the job leaves the queue of its outcome.

    An ended attempt never changes, so a repetition after a crash changes nothing, and neither claim nor fence
    is needed. Raises when ZooKeeper is unreachable, as every handler does; no other error of the history
    stops a job.
    """
    history, state = job.context.reporting.history, job.state
    if history is None or state.attempt in {0, job.recorded_run}:
        return
    attempt = job.attempt()
    if attempt is None or not is_run(attempt):
        return
    # An attempt that its time limit ended is `killed`; the record stores the reason.
    error = state.error if attempt.state is AttemptState.KILLED else verdict_of_attempt(attempt).error
    try:
        run = run_of(attempt, job_id=job.id, spark=_spark(job), error=error)
        history.record(job.definition.name, run)
    except (OutcomeUnknown, SessionLost, Unreachable):
        raise
    except Exception as error_of_ours:  # noqa: BLE001 - an error of the history must not stop a job
        logger.opt(exception=error_of_ours).warning(
            "{} is not in the history: {}", attempt.run, error_of_ours
        )
    job.recorded_run = state.attempt


def _spark(job: JobContext) -> Spark:
    try:
        return job.spark
    except RefusedSubmission:  # the defaults of its pool have changed since, and contradict the definition
        return job.definition.spark
