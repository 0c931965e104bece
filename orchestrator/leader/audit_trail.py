"""Brings the changes of operators from ZooKeeper into the logs."""

from orchestrator.audit.documents import AuditLog
from orchestrator.audit.event import AuditEvent
from orchestrator.leader.duty import Fence
from orchestrator.nodes import Nodes
from queues.bundle import commit_many
from queues.operations import Delete
from queues.queue import QueueSet

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

    def step(self) -> float:
        """Bring some, the oldest first; raises NotLeading, OSError of the disk, and what reads raise."""
        fence, session = self._fence(), self._set.session
        names = sorted(session.children(self._nodes.audit) or ())[:_AT_ONCE]
        paths = [self._nodes.audit_entry(name) for name in names]
        written = [
            Delete(path, found[1].version)
            for name, path, found in zip(names, paths, session.get_many(paths), strict=True)
            if found is not None and self._log.write(AuditEvent.read(name, found[0]))
        ]
        if written:
            self._log.sync()
            commit_many(session, [(*fence, removal) for removal in written], self._set.root.receipts)
        return 0.0 if len(written) == _AT_ONCE else _LOOK_SECONDS
