"""Audit events as log documents (ECS), each under its own id."""

import json
import time
from typing import Any

from orchestrator.audit.event import AuditEvent, is_new
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.record.document import ECS_VERSION, Days
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.record.text import MAX_FIELD
from orchestrator.logs.spool.disk_quota import WARNING_LEVEL
from orchestrator.model.times import moment
from queues import Record

DATASET = "orchestrator.audit"
_DAY_SECONDS = 86_400.0
_OLDEST_SECONDS = 90 * _DAY_SECONDS  # age of an event that waited for a leader


class AuditLog:
    """Writes audit documents into the log spool of this process, independent of its log level."""

    def __init__(self, logs: LogPipeline, days: Days) -> None:
        self._logs, self._days = logs, days

    def write(self, event: AuditEvent) -> bool:
        """Append one document; False if the spool does not accept it.

        The index and the id come from the event, so that Elasticsearch stores it once, however often it is
        written.
        """
        spool = self._logs.spool
        if spool is None:
            return False
        epoch = _epoch(event.act.at)
        document = self._document(event, epoch)
        # At this level, so that a spool that is full except for warnings keeps audit documents.
        return spool.append(
            self._days.index(epoch),
            json.dumps(REDACTOR.document(document)).encode(),
            level=WARNING_LEVEL,
            identity=event.id,
        )

    def write_submission(self, record: Record) -> None:
        """Append the submission of a job before its first change of status; a repetition has the same id."""
        if is_new(record.payload) and (event := AuditEvent.of_submission(record)) is not None:
            self.write(event)

    def sync(self) -> None:
        """Return once all written documents are on the disk; raises OSError."""
        if self._logs.spool is not None:
            self._logs.spool.sync()

    def _document(self, event: AuditEvent, epoch: float) -> dict[str, Any]:
        act = event.act
        words = f"{act.by or 'unknown'}: {act.action} {event.kind} {event.target}"
        document: dict[str, Any] = {
            "@timestamp": self._days.timestamp(epoch),
            "log.level": "info",
            "message": f"{words} ({act.detail})" if act.detail else words,
            "event.id": event.id,
            "event.kind": "event",
            "event.dataset": DATASET,
            "event.action": act.action,
            "user.name": act.by,
            "audit.kind": event.kind,
            "audit.target": event.target,
            "audit.detail": act.detail,
            "audit.before": json.dumps(event.before) if event.before else "",
            "audit.after": json.dumps(event.after) if event.after else "",
            "host.name": act.host,
            "process.pid": event.pid,
            "service.name": "orchestrator",
            "ecs.version": ECS_VERSION,
        }
        if event.kind == "job":
            document |= {"job.id": event.target, "job.run_key": event.run_key, "job.pool": event.pool}
        given = {name: value for name, value in document.items() if value not in {"", 0}}
        return {n: REDACTOR.fit(v, MAX_FIELD) if isinstance(v, str) else v for n, v in given.items()}


def _epoch(at: str) -> float:
    """The time of a change; now for an impossible one, which would otherwise create an index of any day."""
    now, found = time.time(), moment(at)
    epoch = now if found is None else found.timestamp()
    return epoch if now - _OLDEST_SECONDS < epoch < now + _DAY_SECONDS else now
