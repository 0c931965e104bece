"""The limits of a spool, and the policy when it is full."""

from dataclasses import dataclass
from enum import StrEnum


class WhenFull(StrEnum):
    """The policy when the spools of a host are full."""

    DROP_OLDEST = "drop_oldest"  # drop the oldest segment; a log call never waits
    DROP_BY_LEVEL = "drop_by_level"  # drop new records below WARNING; others displace the oldest segment
    BLOCK = "block"  # the log call waits for `block_seconds`, then its record is dropped


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """The limits of all spools of a host. Each process enforces them."""

    max_bytes: int = 1024**3
    segment_bytes: int = 8 * 1024**2  # a reader holds a compressed segment in memory
    fsync_seconds: float = 0.2  # records of this time may be lost in a power failure
    when_full: WhenFull = WhenFull.DROP_OLDEST
    block_seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.max_bytes < 2 * self.segment_bytes:
            raise ValueError(
                f"max_bytes is {self.max_bytes}: expected at least two segments, {2 * self.segment_bytes}"
            )
