"""The interface of a target of logs, and the result of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that the target rejects permanently."""

    record: bytes
    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one request."""

    created: int = 0
    duplicates: int = 0  # existed already, because a response or a process was lost
    diverted: int = 0  # accepted, but into the failure store of a data stream
    retry: Sequence[bytes] = ()  # not accepted at present
    dead: Sequence[DeadLetter] = ()


class LogTarget(Protocol):
    """Accepts records in the format of the spool, two lines each. Thread-safe."""

    def prepare(self) -> None:
        """Create what the target needs to accept records; raises TargetUnreachable, TargetRefuses."""

    def send(self, records: Sequence[bytes]) -> BatchResult:
        """Send records, as a whole or each with its own result.

        Raises TargetUnreachable, TargetBusy, TargetRefuses, RequestTooLarge, RequestMalformed.
        """

    def close(self) -> None:
        """Close the connections."""
