"""The states, the ended attempts and the wait of one job, as the live view and `job show` need them."""

import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from orchestrator.admin.job_monitor import JobSnapshot
from orchestrator.client.progress import one_line
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue
from orchestrator.model.times import moment
from orchestrator.model.waiting import Waiting

_ORDER = (Queue.ACCEPT, Queue.RUNNING, Queue.SUCCESS, Queue.FAIL, Queue.KILL, Queue.FINISH, Queue.DEAD)
_PATIENCE_SECONDS = 1.0  # a job that starts at once shows no reason for a wait


def states(job: JobView) -> list[tuple[Queue, float, float | None]]:
    """The states of the job so far: queue, time of entry, time of exit or None (epoch seconds)."""
    times = [(Queue(queue), moment(at)) for queue, at in job.times.items() if queue in set(Queue)]
    came = sorted(
        ((queue, at.timestamp()) for queue, at in times if at is not None),
        key=lambda item: (item[1], _ORDER.index(item[0])),
    )
    leaving = [at for _, at in came[1:]]
    return [(queue, at, leaving[i] if i < len(leaving) else None) for i, (queue, at) in enumerate(came)]


def states_of_attempt(job: JobView) -> Iterator[tuple[Queue, float, float | None]]:
    """The states since the job last entered accept: earlier ones are those of failed attempts."""
    passed = states(job)
    first = max((index for index, (queue, _, _) in enumerate(passed) if queue is Queue.ACCEPT), default=0)
    return islice(passed, first, None)


def end_of_attempt(document: Mapping[str, Any]) -> str:
    """How an attempt has ended: the first line of its error, else its state."""
    lines = (line.strip() for line in error_of_attempt(document).splitlines())
    first = next(filter(None, lines), "")
    return one_line(first) or one_line(document.get("state") or "it cannot be read")


def error_of_attempt(document: Mapping[str, Any]) -> str:
    """The message of its error, with all lines; empty without one."""
    error = document.get("error")
    return str(error.get("message") or "") if isinstance(error, Mapping) else ""


def blocked(now: JobSnapshot) -> Waiting | None:
    """What a job waits for, if it has waited for longer than a moment."""
    passed = states(now.job)
    has_waited = bool(passed) and time.time() - passed[-1][1] >= _PATIENCE_SECONDS
    return now.waiting if has_waited else None
