"""The nodes of a job outside its record: requests to stop it, and its slots."""

from orchestrator.admission.slots import Slots
from orchestrator.model.act import Act
from orchestrator.model.paths import Nodes
from orchestrator.model.records import state_of
from orchestrator.model.stop_requests import is_request_for, request_to_stop
from queues import Acl, CorruptRecord, Delete, Operation, QueueSet, Record
from spark_runner.protocol.attempt import Attempt, attempt_path


class SideNodes:
    """Makes the operations on these nodes that an operator's multi includes."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._session, self._layout = queue_set.session, queue_set.layout
        self._slots = Slots(queue_set.session, Nodes(queue_set.layout.root), queue_set.pools)

    def stop_creation(self, record: Record, act: Act) -> list[Operation]:
        """The operations that request the end of a job; none when it is requested already."""
        path = self._layout.stop(record.pool, record.id)
        asked = {"run_key": record.run_key, "since": act.at, "by": act.by, "host": act.host}
        return request_to_stop(path, self._session.get(path), asked, login=self._login(record))

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

    def _login(self, record: Record) -> str:
        """The digest id of the driver that reads the request; empty without a driver, or where all may read.

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
