"""What a handler says becomes of an item, and what happens when it raises."""

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
    """Again in the same queue, with another payload if one is given, after a delay."""

    payload: Mapping[str, Any] | None = None
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """On to another queue; when the consumer takes that one too and there is no delay, it stays held."""

    queue: str
    payload: Mapping[str, Any] | None = None
    delay_ms: int = 0
    pool: str | None = None


Action = Done | Requeue | Move
Handler = Callable[[Claim], Action]
"""Gets a claimed item; reads `id`, `queue`, `payload`; calls `check()` before what cannot be undone."""


@dataclass(frozen=True, slots=True)
class Retries:
    """What happens to an item whose handler raises: again after a growing delay, then dead."""

    attempts: int = 5  # failures in one queue; the last brings it to dead
    delay_ms: int = 1_000
    factor: float = 2.0
    max_delay_ms: int = 60_000
    max_claims: int = 10  # claims without a step between: such an item kills those who handle it

    def delay_after(self, failures: int) -> int:
        """Milliseconds to wait after so many failures."""
        return min(round(self.delay_ms * self.factor ** min(failures - 1, 64)), self.max_delay_ms)
