"""Liveness and readiness: named checks, reported in the format of Kubernetes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loguru import logger

Check = Callable[[], str]
"""Returns the problem, empty if there is none. Called often: it must be quick and send no request."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The results of the checks of one probe, one per line."""

    is_well: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A named probe, as in `/livez`, with its checks."""

    name: str
    checks: Mapping[str, Check] = field(default_factory=dict)

    def report(self) -> ProbeReport:
        """Run each check; one that raises has failed."""
        results = {name: _run(name, check) for name, check in self.checks.items()}
        is_well = not any(results.values())
        lines = [
            f"[-]{name} failed: {words}" if words else f"[+]{name} ok" for name, words in results.items()
        ]
        return ProbeReport(is_well, (*lines, f"{self.name} check {'passed' if is_well else 'failed'}"))


def _run(name: str, check: Check) -> str:
    try:
        return " ".join(check().split())
    except Exception as error:  # noqa: BLE001 - a bug in one check must not hide the others
        logger.warning("the check {} has raised an error: {}", name, error)
        return "the check has raised an error"
