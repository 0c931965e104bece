"""All examinations one after the other, and mending."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from orchestrator.audit.trail import Trail
from orchestrator.doctor import (
    crew,
    damage,
    drivers,
    ensemble,
    jobs,
    left_overs,
    limits,
    pools,
    rights,
    schedules,
    servers,
    sessions,
)
from orchestrator.doctor.findings import Finding, Kind, in_order
from orchestrator.doctor.survey import Survey
from orchestrator.nodes import Nodes
from queues.bundle import commit_once
from queues.errors import AccessDenied
from queues.queue import QueueSet

_EXAMINATIONS: tuple[Callable[[Survey], Iterator[Finding]], ...] = (
    damage.look,
    left_overs.look_at_locks,
    left_overs.look_at_stops,
    left_overs.look_at_slots,
    jobs.look_at_dead,
    jobs.look_at_warnings,
    jobs.look_at_overdue,
    drivers.look_at_drivers,
    drivers.look_at_attempts,
    crew.look_at_workers,
    crew.look_at_logs,
    sessions.look_at_twins,
    sessions.look_at_sizes,
    pools.look_at_pools,
    pools.look_at_service,
    schedules.look_at_schedules,
    limits.look_at_limits,
    servers.look_at_servers,
    ensemble.look_at_clocks,
    ensemble.look_at_latency,
    rights.look_at_rights,
)


class Doctor:
    """Finds what is wrong with a cluster, while everything goes on, and mends what is safe to mend."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set

    def look(self) -> Sequence[Finding]:
        """What is wrong, the worst first; raises what reads raise. Writes no node but that of the clock.

        Where nodes are closed to us, those alone: nothing else can be examined.
        """
        try:
            return self._examine(Survey.take(self._set))
        except AccessDenied:
            if not (found := list(rights.look(self._set.session, self._set.layout.root))):
                raise
            return in_order(found)

    def mend(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Mend those that are fixable; returns what is left, and what was mended as fixed."""
        fixable = [finding for finding in findings if finding.fixable]
        self._record(fixable)
        if any(finding.kind is Kind.OPEN_NODES for finding in fixable):
            rights.mend(self._set)
        damage.mend(self._set)
        left_overs.mend(Survey.take(self._set), fixable)
        left = self.look()
        there = {(finding.kind, finding.path) for finding in left}
        mended = [
            finding.model_copy(update={"fixed": True})
            for finding in fixable
            if (finding.kind, finding.path) not in there
        ]
        return in_order([*left, *mended])

    def _record(self, fixable: Sequence[Finding]) -> None:
        """Who has all this mended: one entry before it begins, for each mend is a multi of its own."""
        if not fixable:
            return
        nodes = Nodes(self._set.layout.root)
        trail, kinds = Trail(self._set.session, nodes), Counter(str(finding.kind) for finding in fixable)
        act = trail.act("mend", ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items())))
        commit_once(self._set.session, [trail.entry(act, "cluster", nodes.root)], self._set.root.receipts)

    def _examine(self, survey: Survey) -> Sequence[Finding]:
        found = [finding for look in _EXAMINATIONS for finding in look(survey)]
        # A request for a job that is gone is found by the scrubber and by the leader's duty.
        return in_order(list({(f.kind, f.path): f for f in reversed(found)}.values()))
