"""The library API: enqueue jobs, look at them, wait for them, stop them."""

import json
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.cluster_config import ClusterConfig
from orchestrator.errors import AlreadyEnded, NoSuchPool, WaitTimeout
from orchestrator.models.definition import Definition
from orchestrator.models.job import JobState, JobView
from orchestrator.nodes import Nodes
from orchestrator.plan import compile_program
from orchestrator.schedules.book import Book
from orchestrator.states import Queue
from queues.documents import decode, encode, timestamp
from queues.errors import Conflict, CorruptRecord, ItemNotFound
from queues.names import DEFAULT_POOL, Token, check_id
from queues.operations import Create, Operation, Set
from queues.pools import PoolLimits
from queues.queue import QueueSet
from queues.transaction import commit
from spark_runner.attempt import Attempt, attempt_path

_RESCAN_SECONDS = 5.0  # how long a lost watch can hide a change


@dataclass(frozen=True, slots=True)
class JobDetail:
    """All that is known of one job."""

    job: JobView
    run_key: str
    record_path: str
    definition: dict[str, Any]
    attempts: list[dict[str, Any]]
    progress: dict[str, Any] | None  # what the driver shows while it runs
    held_by: dict[str, Any] | None  # the lock


class Client:
    """What people and programs do with jobs. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._session = queue_set.session
        self._layout = queue_set.layout

    @property
    def schedules(self) -> Book:
        """The periodic jobs: list, get, put, pause, resume, remove, by name."""
        return Book(self._session, Nodes(self._layout.root), self._set.clock.now_ms)

    @property
    def config(self) -> ClusterConfig:
        """The limits that hold for all workers: `read` and `change` them."""
        return ClusterConfig(self._session, Nodes(self._layout.root))

    def pools(self) -> dict[str, PoolLimits]:
        """The limits of every pool, low lanes among them."""
        pools = self._set.pools
        return {name: pools.read(name)[0] for name in pools.names(low=True)}

    def change_pool(self, pool: str, **limits: Any) -> PoolLimits:
        """Change limits of a pool: weight, bound, cap, paused, low_share.

        Raises InvalidLimit, NoSuchPool; nothing is changed then.
        """
        if pool == DEFAULT_POOL:  # it is there from the beginning, also when nobody has used it yet
            self._set.ensure_pool()
        elif pool not in (known := self._set.pools.names(low=True)):
            raise NoSuchPool(pool, known)
        return self._set.pools.change(pool, **limits)

    def submit(
        self,
        definition: Definition,
        *,
        job_id: str | None = None,
        delay: float = 0.0,
        riders: Sequence[Operation] = (),
    ) -> JobView:
        """Enqueue a job, due after `delay` seconds; exactly once by id.

        `riders` are done in the same multi, or nothing is: Conflict. Raises SqlError for a script that cannot
        be run, InvalidName, IdTaken; nothing is enqueued then.
        """
        compile_program(definition)
        job_id = str(uuid.uuid4()) if job_id is None else check_id(job_id)
        document = encode(definition.model_dump(mode="json", exclude_defaults=True))
        record = self._set.put(
            Queue.ACCEPT,
            job_id,
            JobState.enqueued(definition.name, queued_limit=definition.timeout.queued).model_dump(
                mode="json", exclude_defaults=True
            ),
            pool=definition.pool,
            delay_ms=round(delay * 1000),
            extra=lambda path: [Create(f"{path}/definition", document), *riders],
        )
        return JobView.of(record)

    def get(self, job_id: str) -> JobView:
        """One job; raises ItemNotFound, CorruptRecord."""
        return self._view(job_id)

    def standing(self, queue: Queue, pool: str = DEFAULT_POOL) -> list[dict[str, Any]]:
        """What stands in a queue, in the order in which it is due: id, status, due, held_by, reason."""
        return [self._standing(queue, pool, token) for token in self._set.tokens(queue, pool)]

    def _standing(self, queue: Queue, pool: str, token: Token) -> dict[str, Any]:
        lock = self._document(self._layout.lock(pool, token.id)) or {}
        row: dict[str, Any] = {
            "id": token.id,
            "status": None,
            "due": datetime.fromtimestamp(token.due / 1000, UTC).isoformat(timespec="milliseconds"),
            "held_by": lock.get("worker"),
            "reason": None,
        }
        try:
            view = self._view(token.id)
        except (ItemNotFound, CorruptRecord) as error:
            # What is buried has its reason in the token: its record was left as it was.
            note = self._document(self._layout.token(queue, pool, token)) or {}
            return {**row, "reason": note.get("reason", str(error))}
        return {**row, "status": view.status.value, "reason": view.error.message if view.error else None}

    def count(self, queue: Queue, pool: str = DEFAULT_POOL) -> int:
        """How many stand in a queue."""
        return self._set.count(queue, pool)

    def jobs(self, queues: tuple[Queue, ...] = tuple(Queue)) -> Iterator[JobView]:
        """All jobs in these queues, each once, in the order of the queues.

        A job that moves while this looks is seen where it was first met; one whose record cannot be read
        stands in `dead` and is left out: `queue show dead` names it.
        """
        seen: set[str] = set()
        for queue in queues:
            for token in self._set.tokens(queue):
                if token.id in seen:
                    continue
                try:
                    view = self._view(token.id)
                except (ItemNotFound, CorruptRecord):
                    continue  # removed meanwhile, or corrupt
                if view.queue in queues:
                    seen.add(token.id)
                    yield view

    def detail(self, job_id: str) -> JobDetail:
        """All that is known of one job; raises ItemNotFound, CorruptRecord."""
        record, _ = self._set.read(job_id)
        view, path = JobView.of(record), self._layout.record(job_id)
        attempts = [self._document(attempt_path(path, number)) for number in range(1, view.attempt + 1)]
        lock = self._layout.lock(record.pool, job_id)
        return JobDetail(
            job=view,
            run_key=record.run_key,
            record_path=path,
            definition=self._document(f"{path}/definition") or {},
            attempts=[attempt for attempt in attempts if attempt is not None],
            progress=self.progress(view),
            held_by=self._document(lock),
        )

    def attempt(self, view: JobView) -> Attempt | None:
        """The last attempt of a job."""
        if view.attempt == 0:
            return None
        return Attempt.read(self._session, attempt_path(self._layout.record(view.id), view.attempt))

    def progress(self, view: JobView) -> dict[str, Any] | None:
        """What the driver shows of itself while it runs; None when none does."""
        if view.attempt == 0 or view.is_final:
            return None
        alive = f"{attempt_path(self._layout.record(view.id), view.attempt)}/alive"
        return self._document(alive)

    def watch(self, job_id: str, wake: threading.Event) -> JobView:
        """One job; `wake` is set when its record changes next."""
        self._session.get(self._layout.record(job_id), wake.set)
        return self._view(job_id)

    def wait(self, job_id: str, timeout: float | None = None) -> JobView:
        """Wait until a job has ended; raises WaitTimeout, ItemNotFound."""
        wake = threading.Event()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (view := self.watch(job_id, wake)).is_final:
            left = _RESCAN_SECONDS if deadline is None else min(_RESCAN_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise WaitTimeout(f"job {job_id!r} is still {view.status} after {timeout:g} s")
            wake.wait(left)
            wake.clear()
        return view

    def kill(self, job_id: str) -> None:
        """Ask to stop a job, whoever holds it; raises AlreadyEnded, ItemNotFound. `wait` tells the result."""
        record, _ = self._set.read(job_id)
        view = JobView.of(record)
        if view.is_final:
            raise AlreadyEnded(f"job {job_id!r} has already ended as {view.status}")
        request = encode({"run_key": record.run_key, "since": timestamp()})
        try:
            commit(self._session, [Create(self._layout.stop(record.pool, job_id), request)])
        except Conflict as conflict:
            if conflict.reason != "NodeExists":
                raise
            found = self._session.get(self._layout.stop(record.pool, job_id))
            if found is None:
                self.kill(job_id)  # its job has just ended
            elif record.run_key.encode() not in found[0]:  # left by an earlier job of this id
                commit(
                    self._session,
                    [Set(self._layout.stop(record.pool, job_id), request, found[1].version)],
                )
            # Else asked before, by us or by somebody else: that is what was wanted.

    def _view(self, job_id: str) -> JobView:
        record, _ = self._set.read(job_id)
        try:
            return JobView.of(record)
        except ValueError as error:
            raise CorruptRecord(job_id, f"its payload is no job's: {error}") from error

    def _document(self, path: str) -> dict[str, Any] | None:
        found = self._session.get(path)
        if found is None or not found[0]:
            return None
        try:
            return decode(found[0])
        except (ValueError, json.JSONDecodeError):
            return {"unreadable": found[0].decode(errors="replace")}
