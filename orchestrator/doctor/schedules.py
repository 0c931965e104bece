"""Checks of schedules: unreadable nodes, and runs that were not enqueued in time."""

from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.survey import ClusterSnapshot
from orchestrator.errors import CorruptSchedule
from orchestrator.schedules.entry import ScheduleRecord
from orchestrator.schedules.fires import GRACE_MS, to_text

_LATE_MS = 2 * GRACE_MS  # another leader has taken over by then


def check_schedules(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Each schedule by its next unhandled fire time."""
    session, nodes = snapshot.session, snapshot.nodes
    names = sorted(session.children(nodes.schedules) or ())
    paths = [nodes.schedule(name) for name in names]
    for name, path, node in zip(names, paths, session.get_many(paths), strict=True):
        if node is None:
            continue  # removed since
        try:
            due = ScheduleRecord.decode(name, path, node[0]).next_ms
        except CorruptSchedule as error:
            remedy = f"`orchestrator schedule remove {name}`, then register it with `orchestrator job submit`"
            yield Finding.of(
                FindingKind.UNREADABLE_SCHEDULE, path, f"its runs are not enqueued: {error}", remedy
            )
            continue
        if due is not None and snapshot.now - due > _LATE_MS:
            late = (snapshot.now - due) // 60_000
            what = f"the run of {name} for {to_text(due)} was not enqueued, and is {late:,} min late"
            remedy = "check that a worker leads, and see its log for this schedule: the pool may be full"
            yield Finding.of(FindingKind.OVERDUE_SCHEDULE, path, what, remedy)
