"""The changes of operators in ZooKeeper: each is made in the multi of the change itself."""

from typing import Any

from orchestrator.audit.event import AuditEvent, Kind, is_new
from orchestrator.audit.waiting import create, make_room
from orchestrator.models.act import Act
from orchestrator.nodes import Nodes
from queues.operations import Create
from queues.record import Record
from queues.session import Session


class Trail:
    """Makes the operations that ride along with a change. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes

    def act(self, action: str, detail: str = "") -> Act:
        """What the login of this session does now."""
        return Act.now(self._session, action, detail)

    def entry(self, act: Act, kind: Kind, target: str, **facts: Any) -> Create:
        """What records a change of anything but a job."""
        return self._entry(AuditEvent.of(act, kind, target, **facts))

    def job_entry(self, act: Act, record: Record) -> Create:
        """What records an act on a job."""
        return self._entry(AuditEvent.of_job(act, record))

    def submission_entries(self, record: Record) -> list[Create]:
        """What records the submission of a job that no worker has taken, for who takes it from accept."""
        submission = AuditEvent.of_submission(record) if is_new(record.payload) else None
        return [] if submission is None else [self._entry(submission)]

    def _entry(self, event: AuditEvent) -> Create:
        make_room(self._session, self._nodes)
        return create(self._nodes, event)
