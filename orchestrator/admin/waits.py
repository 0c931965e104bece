"""The reason why a job does not run yet, from what handlers, workers and operators have recorded."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from orchestrator.admission.high_water import reports_in
from orchestrator.admission.hosts import announced, serves
from orchestrator.admission.same_name import listed, slot_owners
from orchestrator.model.job import JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from orchestrator.model.times import local_time
from orchestrator.model.waiting import Reason, Waiting, at_cap
from queues import LOW_LANE_SUFFIX, PoolLimits, QueueSet, Record
from spark_runner.protocol.attempt import AttemptState

_PASSED = {Queue.SUCCESS, Queue.FAIL, Queue.KILL}  # on the way to the end, or to the next attempt
_NAMED = 3  # workers named in one sentence
_MAX_CHARACTERS = 300  # of an error in one sentence


class Waits:
    """One snapshot of workers and pools, for any number of jobs.

    A handler that leaves a job in accept records the reason in the job. A worker that claims no job at all
    announces the reason. The nodes have the rest: the holder, the due time, the limits of the pool. This
    class writes nothing, so it uses the clock of this host: only a write shows the time of the ensemble.
    """

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._nodes = Nodes(queue_set.layout.root)
        self._limits: dict[str, PoolLimits] = {}
        self._running: dict[str, int] = {}
        self._named: dict[str, Sequence[str]] = {}
        self._full: dict[str, Waiting | None] = {}

    def of(
        self,
        record: Record,
        state: JobState,
        *,
        lock: Mapping[str, Any] | None,
        attempt: Mapping[str, Any] | None,
    ) -> Waiting | None:
        """The reason why a job waits, None when it runs or has ended; `lock` and `attempt` are its nodes.

        Reads the limits of its pool once for all jobs of the pool.
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
            words = f"worker {holder} has claimed it and is about to start it"
            return Waiting(reason=Reason.HELD, message=words, worker=holder)
        if _is_later(record):
            return _until_due(record.token.due, state)
        main = record.pool.removesuffix(LOW_LANE_SUFFIX)
        if any(self._limits_of(pool).paused for pool in (main, record.pool)):
            words = f"pool {main} is paused; `orchestrator queue resume {main}` ends that"
            return Waiting(reason=Reason.PAUSED, message=words)
        left = self._left(state)
        if (missing := self._without_worker(main)) is not None:
            # The worker of `run` serves no pool, and installs the packages of its job.
            return left if left is not None and left.reason == Reason.PACKAGES else missing
        return (
            self._at_cap(main)
            or self._at_high_water(main)
            or self._refused(main)
            or left
            or Waiting(reason=Reason.TURN, message="it is due; the next worker that polls claims it")
        )

    def _not_started(self, record: Record, state: JobState, holder: str) -> Waiting | None:
        if not holder and _is_later(record):
            return _until_due(record.token.due, state)
        if not holder:
            words = "no worker holds it; the next one that polls adopts it"
            return self._without_worker(record.pool) or Waiting(reason=Reason.TURN, message=words)
        words = f"worker {holder} has submitted its driver, which has not started"
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
            lanes = [layout.queue(Queue.RUNNING, lane) for lane in (main, main + LOW_LANE_SUFFIX)]
            found = self._set.session.get_many([self._nodes.slots(main), *lanes])
            placed, *running = [0 if node is None else node[1].children for node in found]
            self._running[main] = max(
                placed, sum(running)
            )  # some jobs may have started before the pool had a cap
        running_now = self._running[main]
        return at_cap(main, running_now, cap) if running_now >= cap else None

    def _at_high_water(self, main: str) -> Waiting | None:
        if not self._limits_of(main).high_water:
            return None
        if main not in self._full:
            report = next(reports_in(self._set.session, self._nodes, main), None)
            self._full[main] = None if report is None else report.waiting(main)
        return self._full[main]

    def _limits_of(self, pool: str) -> PoolLimits:
        if pool not in self._limits:
            self._limits[pool] = self._set.pools.read(pool)[0]
        return self._limits[pool]

    def _of_name(self, name: str) -> Sequence[str]:
        """The running jobs of a name with `concurrency`."""
        if name not in self._named:
            self._named[name] = slot_owners(self._set.session, self._nodes, name)
        return self._named[name]

    # ------------------------------------------------------------------ workers
    def _without_worker(self, pool: str) -> Waiting | None:
        if any(serves(worker, pool) for worker in self._workers.values()):
            return None
        main = pool.removesuffix(LOW_LANE_SUFFIX)
        others = sum(
            worker.get("pools") != [] for worker in self._workers.values()
        )  # `run` serves its own job only
        words = "no worker is connected; `orchestrator worker` starts one"
        if others:
            words = f"no worker serves pool {main}; `orchestrator worker --pool {main}` starts one that does"
        return Waiting(reason=Reason.NO_WORKER, message=words)

    def _refused(self, pool: str) -> Waiting | None:
        """The reason why no worker of a pool claims jobs; None when one of them does."""
        refusals: list[tuple[str, str, str]] = []
        for name, worker in sorted(self._workers.items()):
            if not serves(worker, pool):
                continue
            refusal = worker.get("refuses")
            if not isinstance(refusal, dict) or not refusal.get("reason"):
                return None
            refusals.append((name, str(refusal["reason"]), _line(str(refusal.get("message", "")))))
        if len(refusals) == 1:
            name, reason, words = refusals[0]
            return Waiting(reason=reason, message=f"worker {name} claims no new job: {words}", worker=name)
        (reason, _), *_others = Counter(reason for _, reason, _ in refusals).most_common()
        words = "; ".join(f"{name}: {said}" for name, _, said in refusals[:_NAMED])
        more = f"; and {len(refusals) - _NAMED} more" if len(refusals) > _NAMED else ""
        message = f"none of the {len(refusals)} workers of its pool claims a new job: {words}{more}"
        return Waiting(reason=reason, message=message)

    def _left(self, state: JobState) -> Waiting | None:
        """The reason why a worker that is still connected deferred it."""
        said = state.waiting
        if said is None or said.worker not in self._workers:
            return None
        words = f"worker {said.worker} deferred it at {local_time(said.at)}: {_line(said.message)}"
        if said.reason == Reason.PACKAGES:
            words = f"worker {said.worker} {_line(said.message)}"
        if said.reason == Reason.CONCURRENCY and (now := self._of_name(state.name)):
            words += f"; running now: {listed(now)}"
        return said.model_copy(update={"message": words})


def _is_later(record: Record) -> bool:
    return record.token.due > time.time() * 1000


def _until_due(due_ms: int, state: JobState) -> Waiting:
    due = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="milliseconds")
    at = local_time(due)
    error = f": {_line(state.error.message)}" if state.error else ""
    if state.submissions and state.error:
        reason = Reason.SUBMISSION
        words = f"it could not be submitted; the next try is at {at}{error}"
    elif state.handler_errors:
        reason = Reason.BACKOFF
        cause = state.warning or (state.waiting.message if state.waiting else "")
        words = f"error {state.handler_errors} in a row in its handler; the next try is at {at}"
        words += f": {_line(cause)}" if cause else ""
    elif state.attempt:
        reason = Reason.BACKOFF
        words = f"attempt {state.attempt} has ended; the next may start at {at}{error}"
    else:
        reason, words = Reason.DUE, f"it is due at {at}"
    return Waiting(reason=reason, message=words, until=due)


def _line(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _MAX_CHARACTERS else line[: _MAX_CHARACTERS - 1] + "…"
