"""Removes the last success of a name for which no schedule waits any more."""

from loguru import logger

from orchestrator.leader.duty import Fence
from orchestrator.model.paths import Nodes
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.store import ScheduleStore
from queues import Delete, QueueSet, commit_many

_INTERVAL_SECONDS = 600.0
_AT_ONCE = 100


class OldSuccesses:
    """Removes nodes that no schedule needs, with the fence of the leader; workers then record no more.

    A registration that begins to wait for a name at the same moment changes the version, and the node stays.
    While a schedule cannot be read, nothing is removed: it may wait for any name.
    """

    name = "old-successes"

    def __init__(self, queue_set: QueueSet, nodes: Nodes, store: ScheduleStore, fence: Fence) -> None:
        self._set, self._nodes, self._store, self._fence = queue_set, nodes, store, fence

    def step(self) -> float:
        """Remove at most a hundred; raises NotLeading, and the errors of reads."""
        fence, session = self._fence(), self._set.session
        names = sorted(session.children(self._nodes.successes) or ())
        if not names:
            return _INTERVAL_SECONDS
        # Read before the schedules: a registration after this read changes what was read here.
        found = session.get_many([self._nodes.success(name) for name in names])
        records = list(self._store.records().values())
        if not all(isinstance(record, ScheduleRecord) for record in records):
            return _INTERVAL_SECONDS
        awaited = {
            name
            for record in records
            if isinstance(record, ScheduleRecord)
            for name in record.definition.schedule.after
        }
        old = [
            Delete(self._nodes.success(name), node[1].version)
            for name, node in zip(names, found, strict=True)
            if node is not None and name not in awaited
        ][:_AT_ONCE]
        refusals = commit_many(session, [(*fence, removal) for removal in old], self._set.root.receipts)
        for removal, refused in zip(old, refusals, strict=True):
            words = "is removed" if refused is None else f"is not removed: {refused}"
            logger.info("no schedule waits for {}, which {}", removal.path, words)
        return 0.0 if len(old) == _AT_ONCE else _INTERVAL_SECONDS
