"""Audit events of operators: each is created in the multi of the change that it records."""

from typing import Any

from orchestrator.audit.event import AuditEvent, TargetKind, is_new
from orchestrator.audit.waiting import create, ensure_capacity
from orchestrator.models.act import Act
from orchestrator.nodes import Nodes
from queues.operations import Create
from queues.record import Record
from queues.session import Session


class Trail:
    """Creates the operations that record a change in its multi. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes

    def act(self, action: str, detail: str = "") -> Act:
        """An act of the login of this session at this moment."""
        return Act.now(self._session, action, detail)

    def entry(self, act: Act, kind: TargetKind, target: str, **facts: Any) -> Create:
        """The operation that records a change of anything except a job."""
        return self._entry(AuditEvent.of(act, kind, target, **facts))

    def job_entry(self, act: Act, record: Record) -> Create:
        """The operation that records an act on a job."""
        return self._entry(AuditEvent.of_job(act, record))

    def submission_entries(self, record: Record) -> list[Create]:
        """The operations that record the submission of a job that no worker has claimed yet.

        For a claim from accept other than a worker's.
        """
        submission = AuditEvent.of_submission(record) if is_new(record.payload) else None
        return [] if submission is None else [self._entry(submission)]

    def _entry(self, event: AuditEvent) -> Create:
        ensure_capacity(self._session, self._nodes)
        return create(self._nodes, event)
