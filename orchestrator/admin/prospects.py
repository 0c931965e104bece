"""What a submission would meet: its refusal, or the reason why the job would wait; nothing is written."""

import time

from orchestrator.admin.waits import Waits
from orchestrator.model.definition import Definition
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue
from orchestrator.model.waiting import Waiting
from queues import QueueSet, Record, Token, new_nonce

_ID = "dry-run"  # of a record that exists in this process alone


def would_wait(
    queue_set: QueueSet, definition: Definition, *, job_id: str | None, delay_seconds: float = 0.0
) -> Waiting | None:
    """The reason why a job of this definition would wait if it were enqueued now; None for no known one.

    Raises what its submission would raise now: IdTaken, QueueFull, TooManyPools, InvalidName.
    """
    queue_set.entrance.check_put(Queue.ACCEPT, job_id, pool=definition.pool)
    state = JobState.enqueued(definition.name, queued_limit=definition.timeout.queued)
    record = Record(
        id=_ID,
        run_key=_ID,
        queue=Queue.ACCEPT,
        pool=definition.pool,
        token=Token(id=_ID, due=int((time.time() + delay_seconds) * 1000), seq=0),
        nonce=new_nonce(),
        payload=state.to_payload(),
    )
    return Waits(queue_set).of(record, state, lock=None, attempt=None)
