"""Drains of workers, as an operator requests, withdraws and follows them."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.admission.hosts import WorkerAnnouncement, workers_of
from orchestrator.audit.trail import Trail
from orchestrator.model.act import Act
from orchestrator.model.errors import CannotDrain, NoSuchWorker, NotDraining, SeveralWorkers, StateConflict
from orchestrator.model.paths import Nodes
from queues import Check, Create, Delete, Operation, QueueSet, commit_once, encode


class DrainState(StrEnum):
    """The state of a drain, as its nodes show it."""

    DRAINING = "draining"
    DRAINED = "drained"  # the worker has removed the request, and ended
    WITHDRAWN = "withdrawn"  # the worker runs, and its request is gone
    GONE = "gone"  # the worker is not announced, and its request is left: it was ended, or has no session


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """The state of a drain, the number of jobs that the worker still holds, and the ids of running ones."""

    state: DrainState
    left: int
    jobs: tuple[str, ...]
    follows: bool  # whether the worker has seen the request


class Drains:
    """Asks workers to take nothing more and to end after their drivers. Safe to use from several threads.

    The request is a node that the worker watches. Its path has the name of the worker, which is that of one
    process: a worker that starts later never finds it.
    """

    def __init__(self, queue_set: QueueSet, trail: Trail) -> None:
        self._set, self._session = queue_set, queue_set.session
        self._nodes, self._trail = Nodes(queue_set.layout.root), trail

    def find(self, name: str) -> str:
        """The name of the announced worker with this name, or of the only one on the host with this name.

        Raises NoSuchWorker, SeveralWorkers.
        """
        workers = workers_of(self._session, self._nodes)
        if any(worker.name == name for worker in workers):
            return name
        on_host = [worker.name for worker in workers if worker.text("host") == name]
        if len(on_host) > 1:
            raise SeveralWorkers(name, on_host)
        if not on_host:
            raise NoSuchWorker(name, [worker.name for worker in workers])
        return on_host[0]

    def request(self, worker: str) -> bool:
        """Ask a worker to drain; False when it is asked already. Raises NoSuchWorker, CannotDrain."""
        self._check_follows(worker)
        act, path = self._trail.act("drain"), self._nodes.drain(worker)
        self._session.ensure_path(self._nodes.drains)
        if self._commit(worker, act, Create(path, encode(act.note()))):
            return True
        if self._session.exists(path) is None:
            raise StateConflict(f"the request to worker {worker!r} was withdrawn at this moment; try again")
        return False

    def withdraw(self, worker: str) -> None:
        """Let a worker that drains work again; raises NoSuchWorker, NotDraining."""
        if not self._commit(worker, self._trail.act("undrain"), Delete(self._nodes.drain(worker))):
            raise NotDraining(worker)

    def _commit(self, worker: str, act: Act, operation: Operation) -> bool:
        """Commit this with its audit event while the worker is announced; False when ZooKeeper refuses it."""
        announced, entry = Check(self._nodes.worker(worker)), self._trail.entry(act, "worker", worker)
        if commit_once(self._session, [announced, operation, entry], self._set.root.receipts):
            return True
        if self._session.exists(announced.path) is None:
            raise NoSuchWorker(worker, [each.name for each in workers_of(self._session, self._nodes)])
        return False

    def progress(self, worker: str) -> DrainProgress:
        """The progress of a drain, in one request; raises the errors of reads."""
        announced, asked = self._session.get_many([self._nodes.worker(worker), self._nodes.drain(worker)])
        found = WorkerAnnouncement.of(worker, self._nodes.worker(worker), announced)
        if found is None:
            state = DrainState.DRAINED if asked is None else DrainState.GONE
            return DrainProgress(state, 0, (), follows=True)
        # A worker that ends after its drain has removed its request; one that goes on announces no drain.
        is_withdrawn = asked is None and not found.is_draining
        state = DrainState.WITHDRAWN if is_withdrawn else DrainState.DRAINING
        return DrainProgress(state, found.number("held"), found.jobs, follows=found.is_draining)

    def _check_follows(self, worker: str) -> None:
        path = self._nodes.worker(worker)
        found = WorkerAnnouncement.of(worker, path, self._session.get(path))
        if found is not None and found.document.get("drains") is not True:
            raise CannotDrain(worker)
