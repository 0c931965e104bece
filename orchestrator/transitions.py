"""Log records of what became of jobs: with the state, so that the history of a job outlives ZooKeeper."""

from typing import TYPE_CHECKING

from loguru import logger

from orchestrator.models.job import JobState
from queues.record import Record

if TYPE_CHECKING:
    from loguru import Logger

TRANSITION, REMOVAL = "transition", "removal"  # of a document's `event.action`


def about(record: Record, queue: str, state: JobState, *, action: str = TRANSITION) -> "Logger":
    """The logger for one change of a job's record that was committed; `queue` is where it stands now."""
    fields = {
        "event.kind": "event",
        "event.dataset": "orchestrator.jobs",
        "event.action": action,
        "job.name": state.name,
        "job.queue": str(queue),
        "job.status": str(state.status),
        "job.state": state.model_dump(mode="json", exclude_defaults=True, exclude={"outbox"}),
    }
    return logger.bind(
        job_id=record.id, run_key=record.run_key, pool=record.pool, attempt=state.attempt, fields=fields
    )
