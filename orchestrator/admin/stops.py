"""Requests to stop a job and the other nodes of a job outside its record."""

from collections.abc import Sequence

from orchestrator.admission.slots import Slots
from orchestrator.audit.trail import Trail
from orchestrator.model.act import Act
from orchestrator.model.errors import AlreadyEnded, NotStreaming
from orchestrator.model.job import state_of
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from orchestrator.model.stop_requests import is_request_for, request_to_stop
from queues import (
    Acl,
    Check,
    CorruptRecord,
    Delete,
    ItemNotFound,
    NotClaimed,
    Operation,
    QueueSet,
    Record,
    Refusal,
    commit_once,
)
from spark_runner.protocol.attempt import Attempt, attempt_path
from spark_runner.protocol.stop_order import GRACEFUL


class SideNodes:
    """Makes the operations on these nodes that an operator's multi includes."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._session, self._layout = queue_set.session, queue_set.layout
        self._slots = Slots(queue_set.session, Nodes(queue_set.layout.root), queue_set.pools)

    def stop_creation(self, record: Record, act: Act, *, graceful: bool = False) -> list[Operation]:
        """The operations that request the end of a job; none when it is requested already."""
        path = self._layout.stop(record.pool, record.id)
        asked: dict[str, object] = {"run_key": record.run_key, **act.note()}
        if graceful:
            asked[GRACEFUL] = True
        return request_to_stop(path, self._session.get(path), asked, login=self.login(record))

    def stop_removals(self, record: Record, *pools: str) -> list[Delete]:
        """The operations that remove requests to stop this very job, in its pool and in `pools`."""
        paths = [self._layout.stop(pool, record.id) for pool in sorted({record.pool, *pools})]
        found = zip(paths, self._session.get_many(paths), strict=True)
        return [
            Delete(path, node[1].version)
            for path, node in found
            if node is not None and is_request_for(node[0], record.run_key)
        ]

    def stop_removal(self, path: str, run_key: str) -> list[Delete]:
        """The operation that removes the request in this node; none when it is for another job."""
        found = self._session.get(path)
        if found is None or not is_request_for(found[0], run_key):
            return []
        return [Delete(path, found[1].version)]

    def removals(self, record: Record, *pools: str) -> list[Delete]:
        """The operations that remove requests to stop this very job, and free its slots."""
        stops = self.stop_removals(record, *pools)
        try:
            state = state_of(record)
        except CorruptRecord:  # the slots of the job are unknown then
            return stops
        return [*stops, *self._slots.release(record.pool, state, record.run_key)]

    def login(self, record: Record) -> str:
        """The digest id of the driver that reads requests; empty without a driver, or where all may read.

        A change of the login changes the record, so a request for the former login is refused.
        """
        number = state_of(record).attempt
        if self._session.settings.acl is Acl.OPEN or not number:
            return ""
        path = attempt_path(self._layout.record(record.id), record.run_key, number)
        try:
            attempt = Attempt.read(self._session, path)
        except ValueError:  # a damaged attempt has no driver that would obey
            return ""
        return "" if attempt is None else attempt.login


_MAX_TRIES = 20  # the job moves to another pool and back meanwhile: even one such move is rare


class Stops:
    """Creates stop nodes in the pool of a job, also while the job changes its pool."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._session, self._layout = queue_set.session, queue_set.layout
        self._trail = Trail(queue_set.session, Nodes(queue_set.layout.root))
        self._nodes = SideNodes(queue_set)

    def request(self, job_id: str, *, graceful: bool = False) -> JobView:
        """Request the end of a job, held or not, and return the job as it was then; `wait` shows the result.

        `graceful`: the streaming queries of the job end after their current micro-batch. A later request
        without it ends the job at once. Raises AlreadyEnded, ItemNotFound, and NotStreaming for a graceful
        request to a job without micro-batches.
        """
        record, version = self._set.read(job_id)
        act = self._trail.act("kill", GRACEFUL if graceful else "")
        for _ in range(_MAX_TRIES):
            view = _unended(record)
            if graceful and not view.mode:
                raise NotStreaming(job_id)
            was_made = self._make(record, version, act, graceful=graceful)
            after = self._read_again(record)
            if was_made:
                pool = None if after is None or JobView.of(after[0]).is_final else after[0].pool
                if pool != record.pool:  # no worker looks for the request in a pool that the job has left
                    self.withdraw(self._layout.stop(record.pool, job_id), record.run_key)
                if pool in {record.pool, None}:
                    return view
            if after is None:
                raise AlreadyEnded(f"job {job_id!r} was removed meanwhile")
            record, version = after
        raise NotClaimed(job_id, Refusal.MOVED_ON)

    def withdraw(self, path: str, run_key: str) -> None:
        """Remove a request for this very job, if there is one."""
        removal = self._nodes.stop_removal(path, run_key)
        if removal:  # refused if another client has removed or replaced the request: nothing is left to do
            self._commit(removal)

    def _read_again(self, before: Record) -> tuple[Record, int] | None:
        try:
            record, version = self._set.read(before.id)
        except ItemNotFound:
            return None
        return (record, version) if record.run_key == before.run_key else None

    def _make(self, record: Record, version: int, act: Act, *, graceful: bool) -> bool:
        """Create the request unless the record has changed, so that no ended job gets one."""
        unchanged = Check(self._layout.record(record.id), version)
        # Also refused when the request is created or removed meanwhile.
        change = self._nodes.stop_creation(record, act, graceful=graceful)
        entries = [self._trail.job_entry(act, record)] if change else []
        done = self._commit([unchanged, *change, *entries])
        if not done and self._session.exists(self._layout.stops(record.pool)) is None:
            # An operator has removed the folder.
            self._set.root.forget_folders()
            self._set.ensure_pool(record.pool)
        return done

    def _commit(self, operations: Sequence[Operation]) -> bool:
        """Whether it was done; sent a second time, the request could reach a later job of this id."""
        return commit_once(self._session, operations, self._set.root.receipts)


def _unended(record: Record) -> JobView:
    view = JobView.of(record)
    if view.is_final:
        raise AlreadyEnded(f"job {record.id!r} has already ended as {view.status}")
    return view
