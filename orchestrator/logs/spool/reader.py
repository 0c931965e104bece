"""Reads a spool: records in order, skipping torn and damaged ones."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.logs.spool.position import Position
from orchestrator.logs.spool.segments import Segment, frame_at, frames, next_frame, segments_in

_CHUNK_BYTES = 1024**2  # read at once from a plain segment


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records, from `start` up to `end`."""

    records: list[bytes]
    start: Position
    end: Position


class SpoolReader:
    """Reads one folder from a position.

    `end` returns the position of the writer of this process; without it, the reader goes to the end of the
    files. `whole`: the folder has no writer any more, so an unreadable rest is torn and stays incomplete.
    """

    def __init__(
        self,
        folder: Path,
        position: Position | None = None,
        *,
        end: Callable[[], Position] | None = None,
        whole: bool = False,
    ) -> None:
        self.position = position or Position()
        self.damaged_bytes = 0  # skipped, in the middle or at the end
        self._folder, self._end, self._whole = folder, end, whole
        self._segment = Segment(-1, folder)
        self._data = b""  # of `_segment`, from offset `_from`
        self._from = 0
        self._is_all = False  # `_data` reaches to the end of a complete segment

    def read(self, max_records: int, max_bytes: int) -> Batch | None:
        """The next records, up to the limits; None if there are none yet.

        Raises OSError if the disk cannot be read.
        """
        end = self._end() if self._end is not None else None
        while True:
            segment, is_last = self._find(end)
            if segment is None:
                return None
            batch = self._read_from(segment, max_records, max_bytes)
            if batch is not None:
                self.position = batch.end
                return batch
            # Not `segment`: it may be compressed by now.
            if not self._skip(self._segment, end, is_last=is_last):
                return None

    def pending_bytes(self) -> int:
        """Unread bytes of the current segment, or 1 GiB if the writer is in a later one. Needs `end`."""
        end = self._end() if self._end is not None else self.position
        return end.offset - self.position.offset if end.segment == self.position.segment else 1 << 30

    # ------------------------------------------------------------------ one segment
    def _find(self, end: Position | None) -> tuple[Segment | None, bool]:
        """The segment to read, and whether it is the last one."""
        if end is not None and end <= self.position:
            return None, True
        known = self._segment
        if known.number == self.position.segment and end is not None:
            return known, known.number == end.segment
        left = [each for each in segments_in(self._folder) if each.number >= self.position.segment]
        if not left:
            return None, True
        if left[0].number > self.position.segment:
            self.position = Position(left[0].number, 0)
        if left[0].number != known.number:
            self._segment = left[0]
            self._forget(self.position.offset)
        return self._segment, len(left) == 1

    def _read_from(self, segment: Segment, max_records: int, max_bytes: int) -> Batch | None:
        start, data = self.position.offset, self._loaded(segment)
        offset, base = start - self._from, self._from
        records, size = list[bytes](), 0
        while len(records) < max_records and size < max_bytes:
            found = frame_at(data, offset)
            if found is None:
                if records or not self._load_more(segment, base + offset):
                    break
                data, offset, base = self._data, 0, self._from
                continue
            record, offset = found
            size += len(record)
            if size > max_bytes and records:
                offset -= len(record) + 8
                break
            records.append(record)
        if not records:
            return None
        return Batch(records, Position(segment.number, start), Position(segment.number, base + offset))

    def _loaded(self, segment: Segment) -> bytes:
        if not self._from <= self.position.offset <= self._from + len(self._data):
            self._forget(self.position.offset)
        if not self._data:
            self._load_more(segment, self.position.offset)
        return self._data

    def _load_more(self, segment: Segment, offset: int) -> bool:
        """Read more from `offset`; False if there is no more data than before."""
        if self._is_all:
            return False
        known = self._from + len(self._data)
        try:
            if segment.is_compressed:
                self._forget(offset)  # before: never two segments in memory
                self._data, self._is_all = segment.read()[offset:], True
            else:
                size = max(_CHUNK_BYTES, 2 * (known - offset))  # a record may be longer than a chunk
                self._data, self._from = _read_part(segment.path, offset, size), offset
        except FileNotFoundError:  # compressed, or dropped, since it was listed
            return self._load_anew(segment, offset)
        return self._from + len(self._data) > known

    def _load_anew(self, segment: Segment, offset: int) -> bool:
        for found in segments_in(self._folder):
            if found.number == segment.number and found.is_compressed:
                self._segment = found
                return self._load_more(found, offset)
        self._forget(offset)
        return False

    def _skip(self, segment: Segment, end: Position | None, *, is_last: bool) -> bool:
        """Skip unreadable bytes; False if that reaches the present end."""
        rest = self._rest(segment)
        if end is not None and is_last:
            rest = rest[: max(0, end.offset - self.position.offset)]
        if rest:
            place = next_frame(rest, 0)
            if place is not None:
                self.damaged_bytes += place
                self._move(Position(segment.number, self.position.offset + place))
                return True
            if is_last and not self._whole:
                return False  # a record is being written
            self.damaged_bytes += len(rest)
        if is_last:
            self._move(Position(segment.number, self.position.offset + len(rest)))
            return False
        self._move(Position(segment.number + 1, 0))
        return True

    def _rest(self, segment: Segment) -> bytes:
        if self._is_all:
            return self._data[self.position.offset - self._from :]
        try:
            if segment.is_compressed:
                return segment.read()[self.position.offset :]
            return _read_part(segment.path, self.position.offset, -1)
        except FileNotFoundError:  # dropped. Other errors may be transient, so they do not skip data
            return b""

    def _move(self, position: Position) -> None:
        self.position = position
        self._forget(position.offset)

    def _forget(self, offset: int) -> None:
        """Discard the data in memory."""
        self._data, self._from, self._is_all = b"", offset, False


def undelivered_in(segment: Segment, delivered: Position) -> int:
    """The number of records of a segment after the delivered position; raises OSError."""
    if segment.number < delivered.segment:
        return 0
    data = segment.read()
    offset = delivered.offset if segment.number == delivered.segment else 0
    count, place = 0, offset if frame_at(data, offset) is not None else next_frame(data, offset)
    while place is not None:
        for _, end in frames(data, place):
            count, place = count + 1, end
        place = next_frame(data, place)
    return count


def _read_part(path: Path, offset: int, size: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if size < 0:
            size = max(0, os.fstat(file).st_size - offset)
        return os.pread(file, size, offset)
    finally:
        os.close(file)
