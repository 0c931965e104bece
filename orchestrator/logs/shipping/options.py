"""Options of the shipper."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShipperOptions:
    """Limits and intervals of a shipper; docs/logs.md describes the defaults."""

    max_actions: int = 2_000  # records per request; twice as fast as 500, and as fast as 10,000
    max_bytes: int = 5_000_000
    max_seconds: float = 1.0  # until an incomplete batch is sent
    in_flight: int = 2  # concurrent requests: more gain a few percent, and each holds a thread and a batch
    adopt_seconds: float = 10.0  # between searches for spools of processes that have ended
    status_seconds: float = 1.0  # between checkpoints and status files
    flush_seconds: float = 5.0  # at the end of the process; another process ships the rest
