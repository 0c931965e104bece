"""Moves the audit events of operators from ZooKeeper into the logs."""

from loguru import logger

from orchestrator.audit.documents import AuditLog
from orchestrator.audit.trail import waiting_changes
from orchestrator.leader.duty import Fence
from orchestrator.model.paths import Nodes
from queues import Conflict, QueueSet, commit_many

_NOT_EMPTY = "NotEmpty"
_LOOK_SECONDS = 5.0
_AT_ONCE = 50  # an audit event has 400 bytes; a node of another program may have a megabyte


class AuditTrail:
    """Writes each event into the log spool, and removes its node once the spool is on the disk.

    If a leader dies in between, the next one writes the event again under the same id, so that the index
    stores it once.
    """

    name = "audit-trail"

    def __init__(self, queue_set: QueueSet, nodes: Nodes, fence: Fence, log: AuditLog) -> None:
        self._set, self._nodes, self._fence, self._log = queue_set, nodes, fence, log
        self._stuck = set[str]()  # nodes of other programs: written, but not removable

    def step(self) -> float:
        """Move the oldest events; raises NotLeading, OSError of the disk, and the errors of reads."""
        fence, session = self._fence(), self._set.session
        there = sorted(session.children(self._nodes.audit) or ())
        self._stuck.intersection_update(there)
        names = [name for name in there if name not in self._stuck][:_AT_ONCE]
        changes = waiting_changes(session, self._nodes, names)
        written = [change for change in changes if self._log.write(change.event)]
        if not written:
            return _LOOK_SECONDS
        self._log.sync()
        removals = [(*fence, change.removal) for change in written]
        refusals = commit_many(session, removals, self._set.root.receipts)
        for change, refused in zip(written, refusals, strict=True):
            if isinstance(refused, Conflict) and refused.reason == _NOT_EMPTY:
                self._stuck.add(change.name)
                logger.warning("{} has child nodes and cannot be removed: delete it", change.removal.path)
        return 0.0 if len(written) == _AT_ONCE else _LOOK_SECONDS
