"""One log that is read as it grows, in chunks of whole records."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator.driver_logs.cut_log import CutLog, LogSlice
from orchestrator.driver_logs.positions import Chunk
from orchestrator.driver_logs.records import ParsedRecord, records

_HOLD_SECONDS = 0.4  # less than between looks: what has not grown by then has nothing that belongs to its end
CHUNK_BYTES = 1 << 20  # as much as is in memory of a log, and the longest record


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """Records that stand one behind the other, up to `upto`."""

    records: list[ParsedRecord]
    offset: int
    upto: int
    is_full: bool = False  # there may be more behind them
    lost_bytes: int = 0  # in front of them: cut before anybody read them


class LogTail:
    """A log and how far it was read. A copy that is `sliding` at some size is read up to there."""

    def __init__(self, path: Path, name: str, chunk: Chunk, *, sliding: int = 0) -> None:
        self.name = name
        self.at = chunk.offset
        self._log, self._sliding = CutLog(path), sliding
        self._again = chunk if chunk.offset < chunk.upto else None
        self._seen: tuple[int, int] | None = None  # size and time of the file when all of it was looked at
        self._seen_at = 0.0  # monotonic
        self._held = False  # whole lines were left, which may have something to do with the next ones
        self._ended = False  # it was read to its end, which is the last one

    def interrupted(self, *, ended: bool) -> tuple[ParsedChunk, float] | None:
        """What was announced and may not have been appended, with its time; once."""
        chunk, self._again = self._again, None
        if chunk is None:
            return None
        part = self._log.read(chunk.offset, chunk.upto - chunk.offset, ended=ended)
        if part is None:
            self._again = chunk  # it is being cut
            return None
        if part.offset >= chunk.upto:  # cut meanwhile: what has become of it nobody can tell
            return ParsedChunk([], chunk.offset, chunk.upto, is_full=True), chunk.time
        found = records(part.data[: chunk.upto - part.offset], part.offset, whole=True)
        return ParsedChunk(found, chunk.offset, chunk.upto, is_full=True), chunk.time

    def resume(self, chunk: Chunk) -> None:
        """Give what was announced once more, or the rest of it."""
        self._again = chunk

    def rewind(self) -> None:
        """What was given last was not taken: give it again."""
        self._seen, self._ended = None, False

    @property
    def is_interrupted(self) -> bool:
        """Whether `interrupted` has something to give."""
        return self._again is not None

    def next(self, *, ended: bool, flush: bool) -> ParsedChunk | None:
        """The next records, None when there are none by now.

        The last lines wait for a look at which the log has not grown, or for `flush`; a line without its end
        waits for the end of the driver.
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
        behind = part.offset + len(part.data)
        upto = found[-1].offset + len(found[-1].data) if found else part.offset
        if not (is_full or part.is_torn):
            self._seen, self._seen_at, self._ended = seen, now, ended
            self._held = upto < behind and b"\n" in part.data[upto - part.offset :]
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
        if is_full and not found:  # one record as long as a chunk: it goes on as another one
            return records(part.data, part.offset, whole=True)
        return found

    def _look(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self._log.path)  # noqa: PTH116 - thrice per run and second: without a Path's detours
        except OSError:
            return None
        if self._sliding and stat.st_size >= self._sliding:
            return None
        return stat.st_size, stat.st_mtime_ns
