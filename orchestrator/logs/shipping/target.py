"""What a place is that takes logs, and what it says of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that will never be taken as it is."""

    record: bytes
    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of each record of a request."""

    created: int = 0
    duplicates: int = 0  # were there already: a reply was lost, or a process
    diverted: int = 0  # taken, but into the failure store of a data stream
    retry: Sequence[bytes] = ()  # not taken at present
    dead: Sequence[DeadLetter] = ()


class LogTarget(Protocol):
    """Takes records as they stand in the spool, two lines each. Safe to use from several threads."""

    def prepare(self) -> None:
        """Make there what records need; raises TargetUnreachable, TargetRefuses."""

    def send(self, records: Sequence[bytes]) -> BatchResult:
        """Deliver some, all or nothing or each for itself.

        Raises TargetUnreachable, TargetBusy, TargetRefuses, RequestTooLarge, RequestMalformed.
        """

    def close(self) -> None:
        """End the connections."""
