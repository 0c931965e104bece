"""One log that is read as it grows, also when its beginning is cut, in chunks of whole records."""

import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.driver_logs.positions import Chunk
from orchestrator.driver_logs.records import ParsedRecord, records
from orchestrator.logs.record.redaction import CUT_BEYOND_BYTES
from spark_runner.protocol.log_limit import OLDER, Cut, read_cut
from spark_runner.protocol.plain_file import open_plain

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

    def bounds(self) -> tuple[int, int]:
        """The offsets of the first byte of the present file, and behind its last one."""
        total = read_cut(self.path).total
        return total, total + _size(self.path)

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
        file = open_plain(path, links=False)  # a driver could link to files of this user
    except (FileNotFoundError, ValueError):  # ValueError: a pipe or a device in its place
        return b""
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return b""
    try:
        return os.pread(file, size, offset)
    finally:
        os.close(file)


_HOLD_SECONDS = 0.4  # shorter than the interval of reads: the record at the end is then complete
CHUNK_BYTES = 1 << 20  # of a log in memory, and the longest record


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """Consecutive records, up to `upto`."""

    records: list[ParsedRecord]
    offset: int
    upto: int
    is_full: bool = False  # there may be more after them
    lost_bytes: int = 0  # bytes before them that were cut unread


class LogTail:
    """A log and the position up to which it was read.

    `cut_at`: where to cut a record that is too long, as `Redactor.cut_at`. `sliding`: a copy of this size
    contains the end of a log instead of its beginning, and is not read.
    """

    def __init__(
        self, path: Path, name: str, chunk: Chunk, *, cut_at: Callable[[bytes, int], int], sliding: int = 0
    ) -> None:
        self.name = name
        self._cut_at = cut_at
        self.at = chunk.offset
        self._log, self._sliding = CutLog(path), sliding
        self._again = chunk if chunk.offset < chunk.upto else None
        self._seen: tuple[int, int] | None = None  # size and mtime of the file when it was read to its end
        self._seen_at = 0.0  # monotonic
        self._held = False  # complete lines were left, to which later lines may belong
        self._ended = False  # it was read to its end after the driver's end

    def interrupted(self, *, ended: bool) -> tuple[ParsedChunk, float] | None:
        """Return the announced chunk that may not have been appended, with its time; once."""
        chunk, self._again = self._again, None
        if chunk is None:
            return None
        part = self._log.read(chunk.offset, chunk.upto - chunk.offset, ended=ended)
        if part is None:
            self._again = chunk  # it is being cut
            return None
        if part.offset >= chunk.upto:  # cut in the meantime: its content is unknown
            return ParsedChunk([], chunk.offset, chunk.upto, is_full=True), chunk.time
        found = records(part.data[: chunk.upto - part.offset], part.offset, whole=True)
        return ParsedChunk(found, chunk.offset, chunk.upto, is_full=True), chunk.time

    def resume(self, chunk: Chunk) -> None:
        """Return an announced chunk, or the rest of it, once more."""
        self._again = chunk

    def rewind(self) -> None:
        """Return the last chunk again: it was not announced."""
        self._seen, self._ended = None, False

    @property
    def is_interrupted(self) -> bool:
        """Whether `interrupted` returns a chunk."""
        return self._again is not None

    def next(self, *, ended: bool, flush: bool) -> ParsedChunk | None:
        """The next records; None if there are none yet.

        The last lines are held until a read finds the log unchanged, or until `flush`; an incomplete line is
        held until the end of the driver.
        """
        seen = self._look()
        has_grown, now = seen != self._seen, time.monotonic()
        held = self._held and (flush or now - self._seen_at >= _HOLD_SECONDS)
        if seen is None or not (has_grown or held or (ended and not self._ended)):
            return None
        part = self._log.read(self.at, CHUNK_BYTES, ended=ended)
        if part is None:
            return None
        is_full = len(part.data) >= CHUNK_BYTES
        found = self._records(part, is_full=is_full, ended=ended, quiet=flush or not has_grown)
        end = part.offset + len(part.data)
        upto = found[-1].offset + len(found[-1].data) if found else part.offset
        if not (is_full or part.is_torn):
            self._seen, self._seen_at, self._ended = seen, now, ended
            self._held = upto < end and b"\n" in part.data[upto - part.offset :]
        if upto <= self.at:
            return None
        return ParsedChunk(found, self.at, upto, is_full or part.is_torn, part.offset - self.at)

    def _records(self, part: LogSlice, *, is_full: bool, ended: bool, quiet: bool) -> list[ParsedRecord]:
        if part.is_torn or (ended and not is_full):
            return records(part.data, part.offset, whole=True)
        if quiet and not is_full:
            lines = part.data[: part.data.rfind(b"\n") + 1]
            return records(lines, part.offset, whole=True)
        found = records(part.data, part.offset, whole=False)
        if is_full and not found:  # a record as long as a chunk: the rest becomes another record
            cut = self._cut_at(part.data, len(part.data) - CUT_BEYOND_BYTES)
            return records(part.data[:cut], part.offset, whole=True)
        return found

    def _look(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self._log.path)  # noqa: PTH116 - three times per run and second: Path is slow
        except OSError:
            return None
        if self._sliding and stat.st_size >= self._sliding:
            return None
        return stat.st_size, stat.st_mtime_ns
