"""The changes of operators in ZooKeeper: each made in the multi of its change, and read by the leader."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from loguru import logger

from orchestrator.audit.event import AuditEvent, TargetKind, is_new
from orchestrator.model.act import Act
from orchestrator.model.paths import Nodes
from queues import AccessDenied, Conflict, Create, Delete, Record, Session, Stat, commit, encode

MAX_WAITING = 5_000
"""Events in the folder, of 400 bytes each: a leader moves fifty of them at a time, every five seconds."""

SUMMED_AT_ONCE = 100  # an audit event has 400 bytes; a node of another program may have a megabyte
SUM = "sum-up"
_MAX_NAMES = 100  # counters in one sum; the digest scheme allows any number of logins
_OTHERS = "others"
_ANY_VERSION = -1


class WaitingChange(NamedTuple):
    """A node, with its event and the operation that removes it."""

    name: str
    event: AuditEvent
    removal: Delete
    has_children: bool  # created by other programs: such a node cannot be removed


def waiting_changes(session: Session, nodes: Nodes, names: Sequence[str]) -> list[WaitingChange]:
    """The existing nodes of these names; one that this login cannot read does not hide the others."""
    paths = [nodes.audit_entry(name) for name in names]
    try:
        found = session.get_many(paths)
    except AccessDenied:
        return [change for name in names for change in _read_one(session, nodes, name)]
    return [_change(nodes, name, *each) for name, each in zip(names, found, strict=True) if each is not None]


def create(nodes: Nodes, event: AuditEvent) -> Create:
    """The operation that creates the node of an event."""
    document = event.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    return Create(nodes.audit_entry(event.id), encode(document))


def ensure_capacity(session: Session, nodes: Nodes) -> None:
    """Create the folder if it is missing; if it is full, replace its oldest events by one with counts."""
    found = session.exists(nodes.audit)
    if found is None:  # checked each time, because an operator may have removed it
        session.ensure_path(nodes.audit)
    elif found.children >= MAX_WAITING:
        _sum_up(session, nodes)


def _sum_up(session: Session, nodes: Nodes) -> None:
    names = sorted(session.children(nodes.audit) or ())
    for start in range(0, len(names), SUMMED_AT_ONCE):
        oldest = waiting_changes(session, nodes, names[start : start + SUMMED_AT_ONCE])
        oldest = [change for change in oldest if not change.has_children]
        if len(oldest) > 1:
            break
    else:
        return
    event = _sum_of([change.event for change in oldest], Act.now(session, SUM), nodes.audit)
    # A conflict means that another client or a leader was faster; the change itself does not depend on it.
    with suppress(Conflict, AccessDenied):
        commit(session, [create(nodes, event), *(change.removal for change in oldest)])
        logger.warning(
            "{} is full: {}; start a worker: the leader moves these events into its logs",
            nodes.audit,
            event.act.detail,
        )


def _sum_of(events: Sequence[AuditEvent], act: Act, target: str) -> AuditEvent:
    """One event with the counts of these, some of which may be sums already."""
    counts = Counter[str]()
    moments = list[str]()
    for event in events:
        if event.act.action == SUM:
            counts.update({n: c for n, c in event.before.items() if isinstance(c, int)})
            moments += [str(event.after.get(end, event.act.at)) for end in ("from", "to")]
        else:
            counts[f"{event.act.by} {event.act.action} {event.kind}"] += 1
            moments.append(event.act.at)
    others = counts.pop(_OTHERS, 0)
    kept = dict(counts.most_common(_MAX_NAMES))
    others += counts.total() - sum(kept.values())
    if others:
        kept[_OTHERS] = others
    first, last = min(moments), max(moments)
    detail = f"{sum(kept.values())} changes from {first} to {last} are kept as counts only"
    return AuditEvent.of(
        act.model_copy(update={"detail": detail}),
        "cluster",
        target,
        before=kept,
        after={"from": first, "to": last},
    )


def _read_one(session: Session, nodes: Nodes, name: str) -> list[WaitingChange]:
    try:
        found = session.get(nodes.audit_entry(name))
    except AccessDenied:
        removal = Delete(nodes.audit_entry(name), _ANY_VERSION)  # the rights on the folder allow it
        return [
            WaitingChange(name, AuditEvent.read(name, b"closed to this login"), removal, has_children=False)
        ]
    return [] if found is None else [_change(nodes, name, *found)]


def _change(nodes: Nodes, name: str, data: bytes, stat: Stat) -> WaitingChange:
    removal = Delete(nodes.audit_entry(name), stat.version)
    return WaitingChange(name, AuditEvent.read(name, data), removal, has_children=stat.children > 0)


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
