"""What a handler may ask for: one frozen value per kind of step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.models.job import JobError
from orchestrator.models.waiting import Waiting
from orchestrator.states import Status
from queues.operations import Operation


@dataclass(frozen=True, slots=True)
class Move:
    """Give the job this status, bring it to the queue of that status, and go on with it there."""

    status: Status
    changes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[Operation, ...] = ()
    delay: float = 0.0  # seconds until it is due there; then it is let go
    pool: str | None = None  # where it goes on; None = where it is


@dataclass(frozen=True, slots=True)
class Finish:
    """Bring the job to finish with this status, for as long as results are kept."""

    status: Status
    changes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Change the record and go on with the job where it is: in finish too, where any status is at home."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[Operation, ...] = ()
    delay: float = 0.0  # seconds until it is due again; then it is let go


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the job and what hangs below its record."""

    extra: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """Let go of the job; another worker, or a later scan, goes on with it."""

    extra: tuple[Operation, ...] = ()
    waiting: Waiting | None = None  # why it cannot be begun here; None: what the record says stays


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now: look again after so many seconds, or when the job is woken before."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Bury:
    """Bring the job to dead, for an operator to look at."""

    reason: JobError
    extra: tuple[Operation, ...] = ()


Action = Move | Finish | Keep | Remove | Release | Wait | Bury
