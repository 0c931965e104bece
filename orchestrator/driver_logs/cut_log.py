"""A log as one long sequence of bytes, whatever was cut from its beginning."""

import os
from dataclasses import dataclass
from pathlib import Path

from spark_runner.log_limit import OLDER, Cut, read_cut
from spark_runner.plain_file import open_plain

_TRIES = 3  # a log is cut within moments, and then not for a long time


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Bytes that stand one behind the other; `offset` counts from the first one that was ever written."""

    offset: int
    data: bytes
    is_torn: bool = False  # what came behind was cut before anybody read it


@dataclass(frozen=True, slots=True)
class CutLog:
    """One log beside which `log_limit` notes what it cuts."""

    path: Path

    def read(self, offset: int, size: int, *, ended: bool) -> LogSlice | None:
        """What stands there from `offset` on; later ones where those were cut before anybody read them.

        None while the log is being cut. `ended`: nobody writes or cuts it any more.
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
        """What must be true after the death of who was cutting; the older part cannot be told from others."""
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
        behind = offset + len(data)
        # One sequence: a line may begin in the older part and end here.
        return LogSlice(offset, data + _pread(self.path, size - len(data), behind - cut.total))


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
    except (FileNotFoundError, ValueError):  # the second for a pipe or a device in its place
        return b""
    try:
        return os.pread(file, size, offset)
    finally:
        os.close(file)
