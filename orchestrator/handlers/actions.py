"""The actions of handlers: one frozen value per kind of transition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.model.job import JobError
from orchestrator.model.states import Status
from orchestrator.model.waiting import Waiting
from queues import Operation


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Set this status, move the job to the queue of the status, and continue with it there."""

    status: Status
    changes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[Operation, ...] = ()
    delay: float = 0.0  # seconds until it is due there; a delayed job is released
    pool: str | None = None  # the new pool; None = unchanged


@dataclass(frozen=True, slots=True)
class Finish:
    """Move the job to finish with this status, for the retention time."""

    status: Status
    changes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Change the record and continue in the same queue; also in finish, where every status is valid."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[Operation, ...] = ()
    delay: float = 0.0  # seconds until it is due again; a delayed job is released


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the job and the nodes below its record."""

    extra: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """Release the job; another worker, or a later scan of this one, continues with it."""

    extra: tuple[Operation, ...] = ()
    waiting: Waiting | None = None  # why it cannot start here; None: the record stays unchanged


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now: call the handler after so many seconds, or when the job is woken earlier."""

    seconds: float
    calm_seconds: float = 0.0  # for so long a call is needed only if a node of the job has changed


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Move the job to dead, where an operator has to decide."""

    reason: JobError
    extra: tuple[Operation, ...] = ()


Action = SetStatus | Finish | Keep | Remove | Release | Wait | DeadLetter
