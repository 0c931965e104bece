"""Runs all checks, and fixes what can be fixed safely."""

from collections import Counter
from collections.abc import Sequence

from orchestrator.audit.trail import Trail
from orchestrator.doctor import damage, left_overs, rights
from orchestrator.doctor.checks import CHECKS
from orchestrator.doctor.findings import Finding, FindingKind, in_order
from orchestrator.doctor.snapshot import ClusterSnapshot
from orchestrator.model.paths import Nodes
from queues import AccessDenied, QueueSet, commit_once


class Doctor:
    """Checks a cluster while it works, and fixes what can be fixed safely."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set

    def check(self) -> Sequence[Finding]:
        """All findings, the most severe first; raises the errors of reads.

        Only the node of the clock is written. If nodes cannot be read with this login, the findings are those
        of the access rights alone, because nothing else can be checked.
        """
        try:
            return self._check(ClusterSnapshot.take(self._set))
        except AccessDenied:
            if not (found := list(rights.check_access(self._set.session, self._set.layout.root))):
                raise
            return in_order(found)

    def fix(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Fix the fixable findings; returns those that are left, and the fixed ones marked as such."""
        fixable = [finding for finding in findings if finding.fixable]
        self._record(fixable)
        if any(finding.kind is FindingKind.OPEN_NODES for finding in fixable):
            rights.fix(self._set)
        damage.fix(self._set)
        left_overs.fix(ClusterSnapshot.take(self._set), fixable)
        left = self.check()
        there = {(finding.kind, finding.path) for finding in left}
        fixed = [
            finding.model_copy(update={"fixed": True})
            for finding in fixable
            if (finding.kind, finding.path) not in there
        ]
        return in_order([*left, *fixed])

    def _record(self, fixable: Sequence[Finding]) -> None:
        """Record the request in one audit event before the first fix, because each fix is its own multi."""
        if not fixable:
            return
        nodes = Nodes(self._set.layout.root)
        trail, kinds = Trail(self._set.session, nodes), Counter(str(finding.kind) for finding in fixable)
        act = trail.act("mend", ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items())))
        commit_once(self._set.session, [trail.entry(act, "cluster", nodes.root)], self._set.root.receipts)

    def _check(self, snapshot: ClusterSnapshot) -> Sequence[Finding]:
        found = [finding for check in CHECKS for finding in check(snapshot)]
        # The scrubber and the leader's duty both find a stop request of a job that is gone: one is reported.
        return in_order(list({(f.kind, f.path): f for f in reversed(found)}.values()))
