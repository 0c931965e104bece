"""The result of the checker, as text and as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_SHOWN = 20  # violations in the text; the JSON has all


class Invariant(StrEnum):
    """The invariants of the suite."""

    LOST = "I1"
    UNEXPECTED = "I2"
    NOT_IN_ONE_QUEUE = "I3"
    STALE_FENCE = "I4"
    STALE_CLAIM = "I4b"
    OVERLAP = "I5"
    TRANSITION = "I6"
    EARLY = "I7"
    ATTEMPTS = "I8"
    LEFT_LOCK = "I10"
    PUT_TWICE = "I11"


MEANING: Mapping[Invariant, str] = {
    Invariant.LOST: "an acknowledged item is lost",
    Invariant.UNEXPECTED: "an item that was never put, or that was removed, is there",
    Invariant.NOT_IN_ONE_QUEUE: "an item is in two queues or in none",
    Invariant.STALE_FENCE: "a change was accepted from a stale fence",
    Invariant.STALE_CLAIM: "an outdated token was claimed",
    Invariant.OVERLAP: "two accepted claims of one item overlap",
    Invariant.TRANSITION: "a step outside of the graph",
    Invariant.EARLY: "a handler ran before the item was due",
    Invariant.ATTEMPTS: "attempts beyond the limit, or that do not grow",
    Invariant.LEFT_LOCK: "a lock is left over",
    Invariant.PUT_TWICE: "a put was acknowledged twice",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of an invariant."""

    invariant: Invariant
    id: str
    run_key: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.id} ({self.run_key or 'no run key'}): {self.what}"


@dataclass(frozen=True, slots=True)
class Report:
    """Violations, and the amount of checked events: an empty run proves nothing."""

    violations: tuple[Violation, ...] = ()
    seen: Mapping[str, int] = field(default_factory=dict)  # events of each kind, items, item histories

    @property
    def ok(self) -> bool:
        """Whether nothing was violated."""
        return not self.violations

    @property
    def counts(self) -> dict[str, int]:
        """Violations by invariant, zeros included."""
        found = Counter(violation.invariant for violation in self.violations)
        return {str(invariant): found[invariant] for invariant in Invariant}

    @property
    def violated(self) -> set[Invariant]:
        """The invariants that were violated."""
        return {violation.invariant for violation in self.violations}

    def to_json(self) -> str:
        """One line of JSON with everything."""
        return json.dumps(
            {
                "ok": self.ok,
                "counts": self.counts,
                "seen": dict(sorted(self.seen.items())),
                "violations": [
                    {
                        "invariant": violation.invariant,
                        "id": violation.id,
                        "run_key": violation.run_key,
                        "what": violation.what,
                    }
                    for violation in self.violations
                ],
            }
        )

    def __str__(self) -> str:
        lines = [f"{'invariant':<9} {'found':>6}  meaning"]
        lines += [f"{code:<9} {count:>6,}  {MEANING[Invariant(code)]}" for code, count in self.counts.items()]
        lines.append("seen: " + ", ".join(f"{count:,} {what}" for what, count in sorted(self.seen.items())))
        lines += [str(violation) for violation in self.violations[:_SHOWN]]
        if (more := len(self.violations) - _SHOWN) > 0:
            lines.append(f"... and {more:,} more")
        return "\n".join(lines)


def merge(reports: Iterable[Report]) -> Report:
    """One report of several shards."""
    violations: list[Violation] = []
    seen: Counter[str] = Counter()
    for report in reports:
        violations += report.violations
        seen.update(report.seen)
    return Report(tuple(violations), dict(seen))
