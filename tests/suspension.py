"""A process whose machine seems to be suspended while it is stopped: its CLOCK_MONOTONIC stands still."""

import mmap
import struct
import time
from pathlib import Path

_SECONDS = struct.Struct("d")


class Suspension:
    """How long a process has been suspended in all, in a file that it shares with its test."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _SECONDS.size)

    @property
    def seconds(self) -> float:
        return float(_SECONDS.unpack_from(self._shared)[0])

    def add(self, seconds: float) -> None:
        """It was suspended for so long once more; before it goes on."""
        _SECONDS.pack_into(self._shared, 0, self.seconds + seconds)

    def stop_monotonic(self) -> None:
        """Let `time.monotonic` of this process stand still meanwhile; timers of the kernel go on."""
        real = time.monotonic
        time.monotonic = lambda: real() - self.seconds
