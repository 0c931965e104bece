"""Whether the process lives, and whether it is ready: named checks, reported as Kubernetes reports them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loguru import logger

Check = Callable[[], str]
"""Says what is wrong, nothing while all is well; asked often, so quick, and it asks nobody else."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What the checks of one probe said; `lines` names each."""

    is_well: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A name, as in `/livez`, and its checks."""

    name: str
    checks: Mapping[str, Check] = field(default_factory=dict)

    def report(self) -> ProbeReport:
        """Ask each check; one that raises has failed."""
        told = {name: _ask(name, check) for name, check in self.checks.items()}
        is_well = not any(told.values())
        lines = [f"[-]{name} failed: {words}" if words else f"[+]{name} ok" for name, words in told.items()]
        return ProbeReport(is_well, (*lines, f"{self.name} check {'passed' if is_well else 'failed'}"))


def _ask(name: str, check: Check) -> str:
    try:
        return " ".join(check().split())
    except Exception as error:  # noqa: BLE001 - a bug in one check must not hide the others
        logger.warning("the check {} fails itself: {}", name, error)
        return "it cannot be asked"
