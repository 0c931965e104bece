"""A process whose machine seems suspended while the process is stopped: its CLOCK_MONOTONIC stops."""

import mmap
import struct
import time
from pathlib import Path

_SECONDS = struct.Struct("d")


class Suspension:
    """Total time of suspension of a process, in a file shared with its test."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _SECONDS.size)

    @property
    def seconds(self) -> float:
        return float(_SECONDS.unpack_from(self._shared)[0])

    def add(self, seconds: float) -> None:
        """Add a time of suspension, before the process is resumed."""
        _SECONDS.pack_into(self._shared, 0, self.seconds + seconds)

    def stop_monotonic(self) -> None:
        """Exclude the suspension from `time.monotonic` of this process, but not from timers of the kernel."""
        real = time.monotonic
        time.monotonic = lambda: real() - self.seconds
