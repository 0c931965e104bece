"""Records ended attempts, and the full hours of running streams, in the history of their job name."""

import math
from collections.abc import Callable
from typing import Any

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.positions import keep_positions
from orchestrator.handlers.tuning import suggest
from orchestrator.handlers.verdict import verdict_of_attempt
from orchestrator.history.history import History, asked_by, is_run, run_of
from orchestrator.history.hours import StreamTotals, hour_of
from orchestrator.history.key import Key
from orchestrator.history.samples import sample_of
from orchestrator.model.spark import Spark
from queues import OutcomeUnknown, SessionLost, Unreachable
from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.protocol.positions_node import positions_path


def record_run(job: JobContext) -> None:
    """Record the last attempt once, and how far its pushes have come, before the job leaves its queue.

    An ended attempt never changes, so a repetition after a crash changes nothing, and neither claim nor fence
    is needed. Raises when ZooKeeper is unreachable, as every handler does; no other error of the history
    stops a job.
    """
    history, state = job.context.reporting.history, job.state
    if state.attempt in {0, job.recorded_run}:
        return
    job.reads.read(job.attempt_path, positions_path(job.attempt_path), job.stop_path)
    keep_positions(job)
    if history is None:
        job.recorded_run = state.attempt
        return
    attempt = job.attempt()
    if attempt is None or not is_run(attempt):
        return
    # An attempt that its time limit ended is `killed`; the record stores the reason.
    error = state.error if attempt.state is AttemptState.KILLED else verdict_of_attempt(attempt).error
    _record(
        history,
        job,
        lambda: run_of(
            attempt,
            job_id=job.id,
            spark=_spark(job),
            error=error,
            key=Key.of(job.definition),
            known_input=job.definition.tuning.input,
            tuned=state.tuned,
        ),
    )
    if attempt.document.get("metrics") or (error is not None and error.error_class == "memory"):
        suggest(job)  # otherwise the run says nothing about resources
    job.recorded_run = state.attempt


def record_hour(job: JobContext, attempt: Attempt) -> float:
    """Record the last full hour of a started attempt that reads streams; returns the seconds to the next one.

    Several workers may do that one after another: the ring holds each hour of a run once. Hours count from
    the start of the driver, by the clock of the ensemble.
    """
    history, monitor = job.context.reporting.history, job.current_monitor()
    if history is None or not job.state.mode:
        return math.inf
    ran = max(0.0, (job.context.clock.confirmed_ms() - attempt.changed_ms) / 1000)
    hour, since = divmod(ran, history.hour_seconds)
    if int(hour) > monitor.recorded_hours:
        progress = job.alive()
        totals = StreamTotals.of(progress)
        if totals is not None:  # otherwise no micro-batch has run yet
            _record(
                history,
                job,
                lambda: hour_of(
                    attempt,
                    int(hour),
                    totals,
                    job_id=job.id,
                    sample=sample_of(progress) | {"asked": asked_by(_spark(job))},
                    key=Key.of(job.definition),
                ),
            )
        monitor.recorded_hours = int(hour)
    return history.hour_seconds - since


def _record(history: History, job: JobContext, entry: Callable[[], dict[str, Any]]) -> None:
    try:
        history.record(job.definition.name, entry())
    except (OutcomeUnknown, SessionLost, Unreachable):
        raise
    except Exception as error:  # noqa: BLE001 - an error of the history must not stop a job
        logger.opt(exception=error).warning(
            "attempt {} of {} is not in the history: {}", job.state.attempt, job.id, error
        )


def _spark(job: JobContext) -> Spark:
    try:
        return job.spark
    except RefusedSubmission:  # the defaults of its pool have changed since, and contradict the definition
        return job.definition.spark
