"""Why jobs do not run yet: one reason for each, from where handlers, workers and operators leave it."""

import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from orchestrator.admission.hosts import announced, serves
from orchestrator.models.job import JobState
from orchestrator.models.waiting import Reason, Waiting, at_cap
from orchestrator.nodes import Nodes
from orchestrator.states import Queue
from orchestrator.times import local_time
from queues.names import LOW
from queues.pools import PoolLimits
from queues.queue import QueueSet
from queues.record import Record
from spark_runner.attempt import AttemptState

_PASSED = {Queue.SUCCESS, Queue.FAIL, Queue.KILL}  # jobs on their way to an end, or to the next attempt
_NAMED = 3  # workers in one sentence
_MAX_CHARACTERS = 300  # of what has failed, in one sentence


class Waits:
    """One look at workers and pools, for any number of jobs.

    A handler that leaves a job in accept says why in its record. A worker that takes no job at all says why
    in its announcement. The rest is in the nodes: who holds the job, when it is due, what binds its pool.
    Nothing is written, so it goes by the clock of this host: that of the ensemble is known by a write alone.
    """

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._nodes = Nodes(queue_set.layout.root)
        self._limits: dict[str, PoolLimits] = {}
        self._running: dict[str, int] = {}

    def of(
        self,
        record: Record,
        state: JobState,
        *,
        lock: Mapping[str, Any] | None,
        attempt: Mapping[str, Any] | None,
    ) -> Waiting | None:
        """Why a job does not get on, None when it runs or has ended; `lock` and `attempt` as they are there.

        Reads what binds its pool, once for all jobs of the pool.
        """
        holder = str((lock or {}).get("worker", ""))
        if record.queue == Queue.ACCEPT:
            return self._in_accept(record, state, holder if lock else None)
        if record.queue == Queue.RUNNING and (attempt or {}).get("state") == AttemptState.INTENT:
            return self._not_started(record, state, holder)
        if record.queue in _PASSED and not holder:
            return self._without_worker(record.pool)
        return None

    @cached_property
    def _workers(self) -> Mapping[str, Mapping[str, Any]]:
        return announced(self._set.session, self._nodes)

    def _in_accept(self, record: Record, state: JobState, holder: str | None) -> Waiting | None:
        if holder is not None:
            words = f"worker {holder} has taken it and is about to start it"
            return Waiting(reason=Reason.HELD, message=words, worker=holder)
        if _is_later(record):
            return _until_due(record.token.due, state)
        main = record.pool.removesuffix(LOW)
        if any(self._limits_of(pool).paused for pool in (main, record.pool)):
            words = f"pool {main} is paused; `orchestrator queue resume {main}` ends that"
            return Waiting(reason=Reason.PAUSED, message=words)
        return (
            self._without_worker(main)
            or self._at_cap(main)
            or self._refused(main)
            or self._left(state)
            or Waiting(reason=Reason.TURN, message="it is due, and the next worker that looks takes it")
        )

    def _not_started(self, record: Record, state: JobState, holder: str) -> Waiting | None:
        if not holder and _is_later(record):
            return _until_due(record.token.due, state)
        if not holder:
            words = "nobody holds it; the next worker that looks goes on with it"
            return self._without_worker(record.pool) or Waiting(reason=Reason.TURN, message=words)
        words = f"worker {holder} has announced its driver, which has not begun"
        if state.warning:
            words += f": {_line(state.warning)}"
        return Waiting(reason=Reason.STARTING, message=words, worker=holder)

    # ------------------------------------------------------------------ pools
    def _at_cap(self, main: str) -> Waiting | None:
        cap = self._limits_of(main).cap
        if not cap:
            return None
        if main not in self._running:
            layout = self._set.layout
            lanes = [layout.queue(Queue.RUNNING, lane) for lane in (main, main + LOW)]
            found = self._set.session.get_many([self._nodes.slots(main), *lanes])
            placed, *running = [0 if node is None else node[1].children for node in found]
            self._running[main] = max(placed, sum(running))  # some may run since before there was a cap
        running_now = self._running[main]
        return at_cap(main, running_now, cap) if running_now >= cap else None

    def _limits_of(self, pool: str) -> PoolLimits:
        if pool not in self._limits:
            self._limits[pool] = self._set.pools.read(pool)[0]
        return self._limits[pool]

    # ------------------------------------------------------------------ workers
    def _without_worker(self, pool: str) -> Waiting | None:
        if any(serves(worker, pool) for worker in self._workers.values()):
            return None
        main = pool.removesuffix(LOW)
        others = sum(worker.get("pools") != [] for worker in self._workers.values())  # `run` serves its own
        words = "no worker is connected; `orchestrator worker` starts one"
        if others:
            words = f"no worker serves pool {main}; `orchestrator worker --pool {main}` starts one that does"
        return Waiting(reason=Reason.NO_WORKER, message=words)

    def _refused(self, pool: str) -> Waiting | None:
        """Why none of the workers of a pool takes any job; None when one of them does."""
        refusals: list[tuple[str, str, str]] = []
        for name, worker in sorted(self._workers.items()):
            if not serves(worker, pool):
                continue
            told = worker.get("refuses")
            if not isinstance(told, dict) or not told.get("reason"):
                return None
            refusals.append((name, str(told["reason"]), _line(str(told.get("message", "")))))
        if len(refusals) == 1:
            name, reason, words = refusals[0]
            return Waiting(reason=reason, message=f"worker {name} takes no new job: {words}", worker=name)
        (reason, _), *_others = Counter(reason for _, reason, _ in refusals).most_common()
        words = "; ".join(f"{name}: {said}" for name, _, said in refusals[:_NAMED])
        more = f"; and {len(refusals) - _NAMED} more" if len(refusals) > _NAMED else ""
        message = f"none of the {len(refusals)} workers of its pool takes a new job: {words}{more}"
        return Waiting(reason=reason, message=message)

    def _left(self, state: JobState) -> Waiting | None:
        """Why a worker that is still there could not begin it."""
        said = state.waiting
        if said is None or said.worker not in self._workers:
            return None
        words = f"worker {said.worker} left it at {local_time(said.at)}: {_line(said.message)}"
        return said.model_copy(update={"message": words})


def _is_later(record: Record) -> bool:
    return record.token.due > time.time() * 1000


def _until_due(due_ms: int, state: JobState) -> Waiting:
    due = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="milliseconds")
    at = local_time(due)
    error = f": {_line(state.error.message)}" if state.error else ""
    if state.submissions and state.error:
        reason = Reason.SUBMISSION
        words = f"it could not be submitted, and the next try is at {at}{error}"
    elif state.handler_errors:
        reason = Reason.BACKOFF
        told = state.warning or (state.waiting.message if state.waiting else "")
        words = f"error {state.handler_errors} in a row while it was handled; the next try is at {at}"
        words += f": {_line(told)}" if told else ""
    elif state.attempt:
        reason = Reason.BACKOFF
        words = f"attempt {state.attempt} is over, and the next may begin at {at}{error}"
    else:
        reason, words = Reason.DUE, f"it is due at {at}"
    return Waiting(reason=reason, message=words, until=due)


def _line(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _MAX_CHARACTERS else line[: _MAX_CHARACTERS - 1] + "…"
