"""How much a spool may take, and what happens when that is reached."""

from dataclasses import dataclass
from enum import StrEnum


class WhenFull(StrEnum):
    """What gives way when the spools of a host are full."""

    DROP_OLDEST = "drop_oldest"  # the oldest segment that can be dropped; a log call never waits
    DROP_BY_LEVEL = "drop_by_level"  # new records below WARNING; the others displace the oldest
    BLOCK = "block"  # the log call waits for `block_seconds`, then its record is dropped


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """The limits of all spools of a host, which each process keeps for itself."""

    max_bytes: int = 1024**3
    segment_bytes: int = 8 * 1024**2  # as much as a reader of a compressed one has in memory
    fsync_seconds: float = 0.2  # what a power failure may cost
    when_full: WhenFull = WhenFull.DROP_OLDEST
    block_seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.max_bytes < 2 * self.segment_bytes:
            raise ValueError(f"a spool of {self.max_bytes} bytes has no room for two segments")
