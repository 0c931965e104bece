"""When the output of a driver was read, so that the lines of its streams can be shown in the order of time.

A line of a program has no time of its own. The file is a hint: a reader without it orders by the last write.
"""

import os
from bisect import bisect_right
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from orchestrator.logs.files import PRIVATE, replace_file
from spark_runner.protocol.plain_file import read_plain

READ_TIMES = "read-times"
# A driver of this user could put a link or a pipe in its place.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_BYTES = 64 * 1024  # some 2,000 entries; beyond, every second one is dropped


class ReadTimes:
    """The times of one run directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / READ_TIMES
        self._size = -1

    def note(self, stream: str, upto: int, epoch: float) -> None:
        """Record that the bytes before `upto` were read at `epoch`; an error costs only the order."""
        entry = f"{stream} {upto} {epoch:.3f}\n"
        with suppress(OSError, ValueError):
            if self._size < 0:
                self._size = self._path.stat().st_size if self._path.exists() else 0
            if self._size + len(entry) > _MAX_BYTES:
                self._thin_out()
            with os.fdopen(os.open(self._path, _APPEND, PRIVATE), "a", encoding="ascii") as file:
                file.write(entry)
            self._size += len(entry)

    def _thin_out(self) -> None:
        lines = read_plain(self._path, 2 * _MAX_BYTES).decode("ascii").splitlines(keepends=True)
        text = "".join(lines[1::2])
        replace_file(self._path, text.encode("ascii"))
        self._size = len(text)


class TimesOfLines:
    """The time of each byte of one stream, in seconds since the epoch: that of the read that included it."""

    def __init__(self, directory: Path, stream: str, last: float) -> None:
        known = defaultdict[str, list[tuple[int, float]]](list)
        with suppress(OSError, ValueError):
            for line in read_plain(directory / READ_TIMES, 2 * _MAX_BYTES).decode("ascii").splitlines():
                name, upto, epoch = line.split()
                known[name].append((int(upto), float(epoch)))
        entries = sorted(known[stream])
        self._ends = [upto for upto, _ in entries]
        self._times = [epoch for _, epoch in entries]
        self._last = last

    def at(self, offset: int) -> float:
        """The time of the byte at this position; of one that was not read yet, that of the last write."""
        index = bisect_right(self._ends, offset)
        return self._times[index] if index < len(self._times) else self._last
