"""Pools in which no job starts, because a running one has filled its buffer up to `high_water`.

The worker that holds such a job reports it in an ephemeral node below `high-water/<pool>`. A pool without
reports costs its readers nothing: they watch the folder.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.admission.pool_folders import PoolFolders
from orchestrator.model.paths import Nodes
from orchestrator.model.water import WaterReport
from queues import (
    LOW_LANE_SUFFIX,
    AccessDenied,
    NodeData,
    Pools,
    Session,
    WatchedFolder,
    decode,
)

REFRESH_SECONDS = 10.0
"""A worker writes its report again after this time, changed or not."""
_STALE_SECONDS = 30.0  # a worker whose report stays unchanged for longer does not follow its jobs any more
_LOOK_SECONDS = 2.0  # between reads of the reports, while there are any
_MAX_REPORTS = 100  # one is enough to hold a pool back


def read_each(session: Session, paths: Sequence[str]) -> list[NodeData | None]:
    """Many nodes; None for each that does not exist or is closed to this login."""
    try:
        return session.get_many(paths)
    except AccessDenied:
        return [_readable(session, path) for path in paths]


def _readable(session: Session, path: str) -> NodeData | None:
    try:
        return session.get(path, await_creation=False)
    except AccessDenied:
        return None


def report_in(found: NodeData | None) -> WaterReport | None:
    """The report in a node; None in one that no session owns, or that holds none."""
    if found is None or not found[1].owner:  # a persistent node outlives its worker
        return None
    try:
        return WaterReport.model_validate(decode(found[0]))
    except ValueError:  # a foreign node
        return None


def reports_in(session: Session, nodes: Nodes, pool: str) -> Iterator[WaterReport]:
    """The present reports of a pool or its low lane, for those who look once. Raises the errors of reads."""
    folder = nodes.water_reports(pool.removesuffix(LOW_LANE_SUFFIX))
    try:
        names = sorted(session.children(folder) or ())[:_MAX_REPORTS]
    except AccessDenied:
        return
    found = read_each(session, [f"{folder}/{name}" for name in names])
    yield from filter(None, map(report_in, found))


@dataclass(slots=True)
class _PoolReports:
    folder: WatchedFolder
    read_at: float = float("-inf")
    since: dict[str, tuple[tuple[int, int], float]] = field(
        default_factory=dict
    )  # by path: write, first seen
    present: WaterReport | None = None


class HighWater:
    """Answers whether a job of a pool holds back the next ones. Thread-safe.

    A report counts while its worker writes it again, which this class measures by its own clock. So neither a
    worker that hangs nor a wrong clock holds back a pool for ever.
    """

    def __init__(
        self, session: Session, nodes: Nodes, pools: Pools, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._session, self._pools, self._clock = session, pools, clock
        self._guard = threading.Lock()
        self._folders = PoolFolders(session, nodes.water_reports)
        self._known: dict[str, _PoolReports] = {}
        self.on_change = self._folders.on_change
        """Calls its argument when jobs of a pool may have been released; it may only set an event."""

    def report(self, pool: str) -> WaterReport | None:
        """The report that holds back jobs of a pool and its low lane now; None if they may start.

        Costs no request while there is no report, and else one each 2 s. Raises the errors of reads.
        """
        main = pool.removesuffix(LOW_LANE_SUFFIX)
        if not self._pools.limits(main, self._folders.wake)[0].high_water:
            return None
        with self._guard:
            try:
                return self._look(main)
            except AccessDenied:  # closed to this login: no other job depends on it
                return None

    def _look(self, main: str) -> WaterReport | None:
        reports = self._known.get(main)
        if reports is None:
            reports = self._known[main] = _PoolReports(self._folders.of(main))
        is_listed = reports.folder.refresh(urgent=True)
        if is_listed and not reports.folder.names and self._session.exists(reports.folder.path) is None:
            # An operator has removed the folder: without one, no watch reports the next report.
            self._session.ensure_path(reports.folder.path)
            reports.folder.changed = True
            reports.folder.refresh(urgent=True)
        if not reports.folder.names:
            reports.present = None
            reports.since.clear()
        elif is_listed or self._clock() - reports.read_at >= _LOOK_SECONDS:
            self._read(reports)
        return reports.present

    def _read(self, reports: _PoolReports) -> None:
        names = sorted(reports.folder.names)[:_MAX_REPORTS]
        paths = [f"{reports.folder.path}/{name}" for name in names]
        reports.present, before, reports.since = None, reports.since, {}
        for path, found in zip(paths, read_each(self._session, paths), strict=True):
            if found is None:
                reports.folder.changed = True  # the report of its removal may be lost
                continue
            now, write = self._clock(), (found[1].created, found[1].version)
            seen, since = before.get(path, (write, now))
            reports.since[path] = write, since if seen == write else now
            if reports.present is None and now - reports.since[path][1] < _STALE_SECONDS:
                reports.present = report_in(found)
        reports.read_at = self._clock()
