"""A log as one sequence of bytes, with offsets that count the bytes cut from its beginning."""

import os
from dataclasses import dataclass
from pathlib import Path

from spark_runner.log_limit import OLDER, Cut, read_cut
from spark_runner.plain_file import open_plain

_TRIES = 3  # a cut takes moments, and cuts are rare


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Consecutive bytes; `offset` counts from the first byte that was ever written."""

    offset: int
    data: bytes
    is_torn: bool = False  # the bytes after it were cut before they were read


@dataclass(frozen=True, slots=True)
class CutLog:
    """One log; `log_limit` records its cuts in a file beside it."""

    path: Path

    def read(self, offset: int, size: int, *, ended: bool) -> LogSlice | None:
        """Read from `offset`, or from the first later byte that still exists.

        None while the log is being cut. `ended`: the log has no writer any more.
        """
        for _ in range(_TRIES):
            cut = read_cut(self.path)
            if cut.pending:
                if not ended:
                    return None
                cut = self._left_half_way(cut)
                return self._read(cut, offset, size)
            part = self._read(cut, offset, size)
            if read_cut(self.path) == cut:
                return part
        return None

    def _left_half_way(self, cut: Cut) -> Cut:
        """The state of a cut that was interrupted by a crash; the older part cannot be identified."""
        if _size(self.path) >= cut.pending:
            return Cut(cut.total)
        return Cut(cut.total + cut.pending)

    def _read(self, cut: Cut, offset: int, size: int) -> LogSlice:
        data = b""
        if offset < cut.total:
            older = Path(f"{self.path}{OLDER}")
            begin = cut.older_end - _size(older) if cut.older_end else cut.total
            offset = max(offset, begin)
            if offset < cut.older_end:
                data = _pread(older, min(size, cut.older_end - offset), offset - begin)
                is_all = offset + len(data) == cut.older_end
                if cut.older_end < cut.total or not is_all:
                    return LogSlice(offset, data, is_torn=is_all)
            else:
                offset = cut.total
        end = offset + len(data)
        # One sequence: a line may begin in the older part and end in the present file.
        return LogSlice(offset, data + _pread(self.path, size - len(data), end - cut.total))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _pread(path: Path, size: int, offset: int) -> bytes:
    if size <= 0:
        return b""
    try:
        file = open_plain(path)
    except (FileNotFoundError, ValueError):  # ValueError: a pipe or a device in its place
        return b""
    try:
        return os.pread(file, size, offset)
    finally:
        os.close(file)
