"""Periodic jobs whose time has come and gone."""

from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.errors import CorruptSchedule
from orchestrator.schedules.entry import Entry
from orchestrator.schedules.fires import GRACE_MS, to_text

_LATE_MS = 2 * GRACE_MS  # another leader has taken over by then


def look_at_schedules(survey: Survey) -> Iterator[Finding]:
    """Each schedule by the fire times that have been dealt with."""
    session, nodes = survey.session, survey.nodes
    names = sorted(session.children(nodes.schedules) or ())
    paths = [nodes.schedule(name) for name in names]
    for name, path, node in zip(names, paths, session.get_many(paths), strict=True):
        if node is None:
            continue  # removed meanwhile
        try:
            due = Entry.decode(name, path, node[0]).next_ms
        except CorruptSchedule as error:
            remedy = f"`orchestrator schedule remove {name}`, then register it with `orchestrator job submit`"
            yield Finding.of(Kind.UNREADABLE_SCHEDULE, path, f"no run is enqueued: {error}", remedy)
            continue
        if due is not None and survey.now - due > _LATE_MS:
            late = (survey.now - due) // 60_000
            what = f"the run of {name} of {to_text(due)} is not enqueued, and {late:,} min have passed since"
            remedy = "see that a worker leads, and what its log says of this schedule: its pool may be full"
            yield Finding.of(Kind.OVERDUE_SCHEDULE, path, what, remedy)
