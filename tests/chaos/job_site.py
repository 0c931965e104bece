"""A site for scripted jobs: a backend, worker processes, and a client that survives outages."""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from orchestrator.client.client import Client
from orchestrator.compose import build_client, open_session
from orchestrator.config.settings import Settings
from orchestrator.model.definition import Definition
from orchestrator.model.errors import AlreadyEnded, StateConflict
from orchestrator.model.states import Queue, Status
from queues.model.codec import encode, timestamp
from queues.model.errors import Conflict, IdTaken, ItemNotFound, QueueError
from queues.model.operations import Create, Delete
from queues.session import Session
from queues.store.commit import commit
from tests.scripted.backend import Backend
from tests.scripted.judge import left_over, overshot, violations
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

SESSION_S = 4.0
_RETRY_S = 0.2
_DRAIN_S = 30.0  # 10 s are promised; the machine may be busy
_LEFT_S = 20.0  # ephemerals of a driver or worker exist until the timeout of its session

T = TypeVar("T")


class Site:
    """One orchestrator below `root`; a context manager. `without` takes a protection out of its workers.

    `way()` returns the connection string for the next process: first the backend, then each worker.
    """

    def __init__(
        self,
        folder: Path,
        hosts: str,
        root: str,
        *,
        workers: int,
        slots: int,
        without: str = "",
        compares: bool = True,
        way: Callable[[], str] | None = None,
    ) -> None:
        self.settings = Settings(
            zookeeper_hosts=hosts,
            root=root,
            state_dir=folder / "state",
            session_timeout=SESSION_S,
            kill_grace=2.0,
        )
        way = way or (lambda: hosts)
        self.backend = Backend(self.settings.state_dir, way(), compares=compares)
        self.ledger = self.backend.store.ledger
        self.workers: list[WorkerProcess] = []
        for number in range(workers):
            settings = self.settings.model_copy(update={"zookeeper_hosts": way()})
            config = worker_config(settings, "scripted", slots=slots, without=without)
            self.workers.append(WorkerProcess(f"w{number}", folder, config, hosts))
        self._pools = {"default"}
        self.expected: dict[str, Collection[Status]] = {}
        self.caps: dict[str, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.session: Session = stack.enter_context(
                open_session(self.settings, self.settings.zookeeper_hosts)
            )
            self.client: Client = build_client(self.session, self.settings)
            stack.enter_context(self.backend)
            stack.enter_context(worker_processes(*self.workers))
            for worker in self.workers:
                worker.wait_started()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def supervise(self) -> None:
        """Restart workers that found no ZooKeeper at their start, as a service manager would."""
        for worker in self.workers:
            if not worker.is_running:
                worker.start()

    # ------------------------------------------------------------------ jobs
    def cap_pool(self, pool: str, cap: int) -> None:
        """Limit the running jobs of a pool."""
        self.client._set.ensure_pool(pool)  # noqa: SLF001 - before its first job
        self.client.change_pool(pool, cap=cap)
        self.caps[f"pool:{pool}"] = cap

    def submit(
        self, job_id: str, definition: Definition, expected: Collection[Status], *, delay: float = 0.0
    ) -> None:
        """Enqueue a job, however long that takes, and record its expected end."""
        if definition.concurrency:
            self.caps[f"name:{definition.name}"] = definition.concurrency
        self.expected[job_id] = expected
        self._pools.add(definition.pool)
        while True:
            try:
                self.client.submit(definition, job_id=job_id, delay=delay)
            except IdTaken:
                return  # ours, whose reply was lost
            except QueueError:
                time.sleep(_RETRY_S)
            else:
                return

    def is_removed(self, job_id: str) -> bool:
        """Remove a job, if there is one; False while it is held."""
        while True:
            try:
                self.client.remove(job_id)
            except ItemNotFound:
                return True
            except StateConflict:
                return False
            except QueueError:
                time.sleep(_RETRY_S)
            else:
                return True

    def leave_stops(self) -> None:
        """Create requests to stop for earlier jobs of the same ids, and delete them at once."""
        for job_id in self.expected:
            record = insist(partial(self.client.get, job_id), ItemNotFound)
            if record is None or record.queue not in {Queue.ACCEPT, Queue.FINISH}:
                continue
            path = f"{self.settings.root}/stops/{record.pool}/{job_id}"
            note = encode({"run_key": "of an earlier job", "since": timestamp()})
            insist(partial(commit, self.session, [Create(path, note)]), Conflict)
            found = insist(partial(self.session.get, path))
            if found is None or found[0] != note:
                continue  # a real request was there, or has replaced it
            insist(partial(commit, self.session, [Delete(path, found[1].version)]), Conflict)

    def kill(self, job_id: str, *, after_turns: int = 0) -> None:
        """Request the stop of a job, however long that takes, right after this many of its turns."""
        seen = set[tuple[Queue, int]]()
        while len(seen) < after_turns:
            view = insist(partial(self.client.get, job_id), ItemNotFound)
            if view is None or view.is_final:
                break
            seen.add((view.queue, view.attempt))
        insist(lambda: self.client.kill(job_id), AlreadyEnded)

    def finished(self) -> int:
        """Number of jobs in finish; waits while ZooKeeper is down."""
        return sum(insist(partial(self.client.count, Queue.FINISH, pool)) or 0 for pool in self._pools)

    # ------------------------------------------------------------------ the end
    def wait_finished(self, seconds: float) -> None:
        """Wait until all jobs are in finish; on a timeout `judge` reports those that are not."""
        deadline = time.monotonic() + seconds
        while self.finished() < len(self.expected) and time.monotonic() < deadline:
            self.supervise()
            time.sleep(_RETRY_S)

    def drain(self) -> None:
        """Drain all workers."""
        self.supervise()
        for worker in self.workers:
            worker.wait_started()  # a worker that has just started has no handler for TERM
            worker.drain(_DRAIN_S)

    def judge(self) -> list[str]:
        """Violations: jobs, limits, nodes left over. The workers must have been drained, or killed."""
        found = violations(self.client, self.ledger, self.expected)
        found += overshot(self.backend.highest, self.caps)

        def left() -> list[str]:
            folder = f"{self.settings.root}/workers"
            workers = [f"workers/{name}" for name in self.session.children(folder) or ()]
            running = [f"the driver of {run} runs" for run in self.backend.running()]
            return [*left_over(self.client, self.session, self.settings.root), *workers, *running]

        try:
            wait_until(lambda: not left(), _LEFT_S, "nothing is left")
        except AssertionError:
            found += left()
        return found

    def starts(self) -> Mapping[str, int]:
        return self.ledger.starts()


def insist(call: Callable[[], T], *accepted: type[Exception]) -> T | None:
    """Call until ZooKeeper answers; None on an accepted error."""
    while True:
        try:
            return call()
        except accepted:
            return None
        except QueueError:
            time.sleep(_RETRY_S)
