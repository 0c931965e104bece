"""Requests to stop a job, whoever holds it."""

from orchestrator.audit.trail import Trail
from orchestrator.errors import AlreadyEnded
from orchestrator.models.act import Act
from orchestrator.models.job import JobView
from orchestrator.nodes import Nodes
from orchestrator.records import state_of, view_of
from orchestrator.stop_requests import request_to_stop
from queues.bundle import commit_once
from queues.documents import decode
from queues.errors import ItemNotFound, NotClaimed, Refusal
from queues.names import Layout
from queues.operations import Check, Delete, Operation
from queues.queue import QueueSet
from queues.record import Record
from queues.session import Acl, Session
from queues.transaction import Transaction
from spark_runner.attempt import Attempt, attempt_path

_MAX_TRIES = 20  # the job moves to another pool and back: that it does so once is rare


class Stops:
    """Makes the nodes that say: somebody wants this job to end. They need no lock, so they always work."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._trail = Trail(queue_set.session, Nodes(queue_set.layout.root))
        self._session: Session = queue_set.session
        self._layout: Layout = queue_set.layout

    def request(self, job_id: str) -> JobView:
        """Ask to stop a job; returns it as it was then. Raises AlreadyEnded, ItemNotFound."""
        record, version = self._set.read(job_id)
        act = self._trail.act("kill")
        for _ in range(_MAX_TRIES):
            view = _unended(record)
            was_made = self._made(record, version, act)
            after = self._again(record)
            if was_made:
                pool = None if after is None or view_of(after[0]).is_final else after[0].pool
                if pool != record.pool:  # no worker looks for the request in a pool that the job has left
                    self.withdraw(self._layout.stop(record.pool, job_id), record.run_key)
                if pool in {record.pool, None}:
                    return view
            if after is None:
                raise AlreadyEnded(f"job {job_id!r} was removed in this moment")
            record, version = after
        raise NotClaimed(job_id, Refusal.MOVED_ON)

    def withdraw(self, path: str, run_key: str) -> None:
        """Take a request for this very job back, if it is there."""
        found = self._session.get(path)
        if found is not None and _run_key(found[0]) == run_key:
            self._commit([Delete(path, found[1].version)])  # else somebody took it away, or made it theirs

    def removals(self, pools: set[str], job_id: str, run_key: str) -> list[Delete]:
        """What takes requests for this very job away in a multi of the caller."""
        paths = [self._layout.stop(pool, job_id) for pool in sorted(pools)]
        found = zip(paths, self._session.get_many(paths), strict=True)
        return [
            Delete(path, node[1].version)
            for path, node in found
            if node is not None and _run_key(node[0]) == run_key
        ]

    def creation(self, record: Record, act: Act) -> list[Operation]:
        """What makes the request in a multi of the caller; nothing when it is there already."""
        path = self._layout.stop(record.pool, record.id)
        asked = {"run_key": record.run_key, "since": act.at, "by": act.by, "host": act.host}
        return request_to_stop(path, self._session.get(path), asked, login=self._login(record))

    def _login(self, record: Record) -> str:
        """The digest id of the driver that is to read the request; empty where there is none, or all may.

        A change of the login changes the record, so a request for the former one is refused.
        """
        number = state_of(record).attempt
        if self._session.settings.acl is Acl.OPEN or not number:
            return ""
        path = attempt_path(self._layout.record(record.id), record.run_key, number)
        try:
            attempt = Attempt.read(self._session, path)
        except ValueError:  # damaged: no driver goes by it
            return ""
        return "" if attempt is None else attempt.login

    def _again(self, before: Record) -> tuple[Record, int] | None:
        try:
            record, version = self._set.read(before.id)
        except ItemNotFound:
            return None
        return (record, version) if record.run_key == before.run_key else None

    def _made(self, record: Record, version: int, act: Act) -> bool:
        """Make the request unless the record has changed: a job that has not ended yet is asked in time."""
        unchanged = Check(self._layout.record(record.id), version)
        # Refused also when the request came or went in this moment.
        change = self.creation(record, act)
        entries = [self._trail.job_entry(act, record)] if change else []
        done = self._commit([unchanged, *change, *entries])
        if not done and self._session.exists(self._layout.stops(record.pool)) is None:  # removed by hand
            self._set.root.forget_folders()
            self._set.ensure_pool(record.pool)
        return done

    def _commit(self, operations: Transaction) -> bool:
        """Whether it was done; by a second sending the request may be for a later job."""
        return commit_once(self._session, operations, self._set.root.receipts)


def _run_key(data: bytes) -> str | None:
    try:
        return str(decode(data).get("run_key"))
    except ValueError:
        return None


def _unended(record: Record) -> JobView:
    view = view_of(record)
    if view.is_final:
        raise AlreadyEnded(f"job {record.id!r} has already ended as {view.status}")
    return view
