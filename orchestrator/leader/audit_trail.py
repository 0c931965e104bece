"""Brings the changes of operators from ZooKeeper into the logs."""

from loguru import logger

from orchestrator.audit.documents import AuditLog
from orchestrator.audit.waiting import entries
from orchestrator.leader.duty import Fence
from orchestrator.nodes import Nodes
from queues.bundle import commit_many
from queues.errors import Conflict
from queues.queue import QueueSet

_NOT_EMPTY = "NotEmpty"
_LOOK_SECONDS = 5.0
_AT_ONCE = 50  # entries of ours have 400 bytes; those of other programs may have a megabyte


class AuditTrail:
    """Writes each entry into the log spool, and removes it once that is on the disk.

    A leader that ends in between leaves it to the next one, which writes it again: under the same id, by
    which an index has it once.
    """

    name = "audit-trail"

    def __init__(self, queue_set: QueueSet, nodes: Nodes, fence: Fence, log: AuditLog) -> None:
        self._set, self._nodes, self._fence, self._log = queue_set, nodes, fence, log
        self._stuck = set[str]()  # of other programs: written, and cannot be removed

    def step(self) -> float:
        """Bring some, the oldest first; raises NotLeading, OSError of the disk, and what reads raise."""
        fence, session = self._fence(), self._set.session
        there = sorted(session.children(self._nodes.audit) or ())
        self._stuck.intersection_update(there)
        names = [name for name in there if name not in self._stuck][:_AT_ONCE]
        written = [entry for entry in entries(session, self._nodes, names) if self._log.write(entry.event)]
        if not written:
            return _LOOK_SECONDS
        self._log.sync()
        steps = [(*fence, entry.removal) for entry in written]
        for entry, refused in zip(written, commit_many(session, steps, self._set.root.receipts), strict=True):
            if isinstance(refused, Conflict) and refused.reason == _NOT_EMPTY:
                self._stuck.add(entry.name)
                logger.warning("{} has nodes below it, and stays: remove it", entry.removal.path)
        return 0.0 if len(written) == _AT_ONCE else _LOOK_SECONDS
