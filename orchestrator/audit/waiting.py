"""The changes that wait in ZooKeeper for a leader: read whoever made their nodes, and bounded."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from loguru import logger

from orchestrator.audit.event import AuditEvent
from orchestrator.models.act import Act
from orchestrator.nodes import Nodes
from queues.documents import encode
from queues.errors import AccessDenied, Conflict
from queues.operations import Create, Delete
from queues.session import Session
from queues.session.stat import Stat
from queues.transaction import commit

MAX_WAITING = 5_000
"""Entries in the folder, of 400 bytes each: a leader takes fifty of them at a time, every five seconds."""

SUMMED_AT_ONCE = 100  # entries of ours have 400 bytes; those of other programs may have a megabyte
SUM = "sum-up"
_MAX_NAMES = 100  # of logins with what they did; the digest scheme has as many as anybody wants
_OTHERS = "others"
_ANY_VERSION = -1


class Entry(NamedTuple):
    """A node, and what it says."""

    name: str
    event: AuditEvent
    removal: Delete
    has_children: bool  # of other programs: such a node cannot be removed


def entries(session: Session, nodes: Nodes, names: Sequence[str]) -> list[Entry]:
    """The entries of these names that are there; one that is closed to us hides no other."""
    paths = [nodes.audit_entry(name) for name in names]
    try:
        found = session.get_many(paths)
    except AccessDenied:
        return [entry for name in names for entry in _alone(session, nodes, name)]
    return [_entry(nodes, name, *each) for name, each in zip(names, found, strict=True) if each is not None]


def create(nodes: Nodes, event: AuditEvent) -> Create:
    """What makes the node of an event."""
    document = event.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    return Create(nodes.audit_entry(event.id), encode(document))


def make_room(session: Session, nodes: Nodes) -> None:
    """Make the folder if there is none; where it is full, one entry that counts them replaces the oldest."""
    found = session.exists(nodes.audit)
    if found is None:  # looked for each time, so that one that was removed by hand hinders nobody
        session.ensure_path(nodes.audit)
    elif found.children >= MAX_WAITING:
        _sum_up(session, nodes)


def _sum_up(session: Session, nodes: Nodes) -> None:
    names = sorted(session.children(nodes.audit) or ())
    for start in range(0, len(names), SUMMED_AT_ONCE):
        oldest = entries(session, nodes, names[start : start + SUMMED_AT_ONCE])
        oldest = [entry for entry in oldest if not entry.has_children]
        if len(oldest) > 1:
            break
    else:
        return
    event = _sum_of([entry.event for entry in oldest], Act.now(session, SUM), nodes.audit)
    # A conflict: somebody else, or a leader, was faster. The change that is under way does not depend on it.
    with suppress(Conflict, AccessDenied):
        commit(session, [create(nodes, event), *(entry.removal for entry in oldest)])
        logger.warning(
            "{} is full: {}; start a worker, whose leader brings them into its logs",
            nodes.audit,
            event.act.detail,
        )


def _sum_of(events: Sequence[AuditEvent], act: Act, target: str) -> AuditEvent:
    """One event instead of these, some of which may be sums already."""
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


def _alone(session: Session, nodes: Nodes, name: str) -> list[Entry]:
    try:
        found = session.get(nodes.audit_entry(name))
    except AccessDenied:
        removal = Delete(nodes.audit_entry(name), _ANY_VERSION)  # which the rights on the folder allow
        return [Entry(name, AuditEvent.read(name, b"closed to this login"), removal, has_children=False)]
    return [] if found is None else [_entry(nodes, name, *found)]


def _entry(nodes: Nodes, name: str, data: bytes, stat: Stat) -> Entry:
    removal = Delete(nodes.audit_entry(name), stat.version)
    return Entry(name, AuditEvent.read(name, data), removal, has_children=stat.children > 0)
