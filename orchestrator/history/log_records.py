"""Log records of transitions, with the state of the job: so its history outlives ZooKeeper."""

from typing import TYPE_CHECKING

from loguru import logger

from orchestrator.model.job import JobState
from queues import Record

if TYPE_CHECKING:
    from loguru import Logger

TRANSITION, REMOVAL = "transition", "removal"  # values of `event.action`


def about(record: Record, queue: str, state: JobState, *, action: str = TRANSITION) -> "Logger":
    """The logger for one committed transition of a job; `queue` is its queue now."""
    fields = {
        "event.kind": "event",
        "event.dataset": "orchestrator.jobs",
        "event.action": action,
        "job.name": state.name,
        "job.queue": str(queue),
        "job.status": str(state.status),
        "job.state": state.to_payload(exclude={"outbox"}),
    }
    return logger.bind(
        job_id=record.id, run_key=record.run_key, pool=record.pool, attempt=state.attempt, fields=fields
    )
