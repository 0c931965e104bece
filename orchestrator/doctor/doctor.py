"""All examinations one after the other, and mending."""

from collections.abc import Callable, Iterator, Sequence

from orchestrator.doctor import (
    crew,
    damage,
    drivers,
    ensemble,
    jobs,
    left_overs,
    limits,
    pools,
    schedules,
    servers,
    sessions,
)
from orchestrator.doctor.findings import Finding, Severity
from orchestrator.doctor.survey import Survey
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
)
_ORDER = list(Severity)


class Doctor:
    """Finds what is wrong with a cluster, while everything goes on, and mends what is safe to mend."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set

    def look(self) -> Sequence[Finding]:
        """What is wrong, the worst first; raises what reads raise. Writes no node but that of the clock."""
        return self._examine(Survey.take(self._set))

    def mend(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Mend those that are fixable; returns what is left, and what was mended as fixed."""
        fixable = [finding for finding in findings if finding.fixable]
        damage.mend(self._set)
        left_overs.mend(Survey.take(self._set), fixable)
        left = self.look()
        there = {(finding.kind, finding.path) for finding in left}
        mended = [
            finding.model_copy(update={"fixed": True})
            for finding in fixable
            if (finding.kind, finding.path) not in there
        ]
        return _in_order([*left, *mended])

    def _examine(self, survey: Survey) -> Sequence[Finding]:
        found = [finding for look in _EXAMINATIONS for finding in look(survey)]
        # A request for a job that is gone is found by the scrubber and by the leader's duty.
        return _in_order(list({(f.kind, f.path): f for f in reversed(found)}.values()))


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda f: (_ORDER.index(f.severity), f.kind, f.path))
