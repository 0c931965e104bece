"""The actions that a handler returns, and the retries after its errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queues.claim import Claim


@dataclass(frozen=True, slots=True)
class Done:
    """The item is finished: it is removed."""


DONE = Done()


@dataclass(frozen=True, slots=True)
class Requeue:
    """Handle the item again in the same queue after a delay, with a new payload if one is given."""

    payload: Mapping[str, Any] | None = None
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """Move to another queue; without a delay the item stays held if this consumer serves that queue too."""

    queue: str
    payload: Mapping[str, Any] | None = None
    delay_ms: int = 0
    pool: str | None = None


Action = Done | Requeue | Move
Handler = Callable[[Claim], Action]
"""Receives a claimed item; reads `id`, `queue`, `payload`; calls `check()` before irreversible effects."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Retries of an item whose handler raises: after a growing delay each, then the item moves to dead."""

    attempts: int = 5  # failures in one queue; the last moves it to dead
    delay_ms: int = 1_000
    factor: float = 2.0
    max_delay_ms: int = 60_000
    max_claims: int = 10  # claims without a step between them: such an item ends its workers

    def delay_after(self, failures: int) -> int:
        """Milliseconds to wait after so many failures."""
        return min(round(self.delay_ms * self.factor ** min(failures - 1, 64)), self.max_delay_ms)
