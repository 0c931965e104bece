"""How logs are sent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShipperOptions:
    """Defaults are those of docs/logs.md."""

    max_actions: int = 2_000  # of a request; twice as fast as 500, and no slower than 10,000
    max_bytes: int = 5_000_000
    max_seconds: float = 1.0  # until what came is sent, though it is little
    in_flight: int = 2  # requests at once: more gain a few percent, and are threads that hold batches
    adopt_seconds: float = 10.0  # between looks for spools of processes that have ended
    status_seconds: float = 1.0  # between checkpoints
    flush_seconds: float = 5.0  # at the end of the process; what is left goes next time
