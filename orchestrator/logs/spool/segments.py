"""The files of a spool: numbered segments of framed records, plain while written, compressed later."""

import errno
import gzip
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEADER = struct.Struct("<II")  # length of the record in bytes, crc32 of the record
MAX_RECORD_BYTES = 4 * 1024 * 1024  # a larger length is damaged: documents are truncated far below
_START = b'{"create":{'  # of every record; locates the next record after damaged bytes


def create_line(index: str, identity: str) -> str:
    """The first line of a record: the action of the bulk request. The document is the second line."""
    return f'{{"create":{{"_index":"{index}","_id":"{identity}"}}}}\n'


def framed(record: bytes) -> bytes:
    """The record with its header, for one write."""
    return HEADER.pack(len(record), zlib.crc32(record)) + record


def frame_at(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The record at `offset` and the offset after it; None if there is no complete and valid record."""
    start = offset + HEADER.size
    if start > len(data):
        return None
    length, crc = HEADER.unpack_from(data, offset)
    end = start + length
    if length > MAX_RECORD_BYTES or end > len(data):
        return None
    record = data[start:end]
    return (record, end) if length and zlib.crc32(record) == crc else None


def frames(data: bytes, offset: int = 0) -> Iterator[tuple[bytes, int]]:
    """Records from `offset`, each with the offset after it, up to the first torn or damaged one."""
    while (found := frame_at(data, offset)) is not None:
        yield found
        offset = found[1]


def next_frame(data: bytes, offset: int) -> int | None:
    """The offset of the first valid record after `offset`; None if there is none."""
    place = offset + 1
    while (place := data.find(_START, place + HEADER.size)) >= 0:
        start = place - HEADER.size
        if frame_at(data, start) is not None:
            return start
        place = start + 1
    return None


_NAME = re.compile(r"(\d{8})\.seg(\.gz)?")
_GZIP = 16 + zlib.MAX_WBITS  # makes zlib expect a gzip header
_PIECE_BYTES = 4 * 1024  # damage in a compressed segment may lose this much before it
_LEVEL = 1  # gzip: 5 to 10 times smaller at 100 MB/s; higher levels cost more time than disk


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One file; `number` orders those of a folder."""

    number: int
    path: Path

    @property
    def is_compressed(self) -> bool:
        """Whether it is compressed, and therefore complete."""
        return self.path.suffix == ".gz"

    def size(self) -> int:
        """Its size on disk; 0 if it does not exist."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self) -> bytes:
        """Its content up to the first damage, little more than `segment_bytes`. Raises OSError."""
        data = self.path.read_bytes()
        return _decompressed(data) if self.is_compressed else data

    def remove(self) -> None:
        """Remove it, and the plain file that a crash during compression has left; raises OSError."""
        self.path.unlink()
        if self.is_compressed:
            segment_path(self.path.parent, self.number).unlink(missing_ok=True)

    def compress(self) -> "Segment":
        """Replace it by a compressed file; a crash leaves the plain file, the compressed one or both.

        Raises OSError; FileExistsError if another thread or process compresses it or has done so.
        """
        target = self.path.with_suffix(".seg.gz")
        draft = self.path.with_suffix(".tmp")
        file = draft.open("xb")
        try:
            with file:
                if target.exists():
                    raise FileExistsError(errno.EEXIST, "compressed already", str(target))
                file.write(gzip.compress(self.path.read_bytes(), _LEVEL))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        try:
            self.path.unlink()
        except FileNotFoundError:  # delivered or dropped in the meantime: it must not reappear
            target.unlink(missing_ok=True)
            raise
        return Segment(self.number, target)


def _decompressed(data: bytes) -> bytes:
    """The data before the first damage; the CRC of each record shows which records are valid."""
    decompressor, found = zlib.decompressobj(_GZIP), list[bytes]()
    try:
        for start in range(0, len(data), _PIECE_BYTES):
            found.append(decompressor.decompress(data[start : start + _PIECE_BYTES]))
    except zlib.error:
        pass
    return b"".join(found)


def segment_path(folder: Path, number: int) -> Path:
    """The path of a plain segment."""
    return folder / f"{number:08d}.seg"


def segments_in(folder: Path) -> list[Segment]:
    """The segments of a folder in order; if a crash has left both files of one, the compressed one."""
    found = dict[int, Segment]()
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    for path in paths:  # `.seg` sorts before `.seg.gz`
        if match := _NAME.fullmatch(path.name):
            number = int(match[1])
            found[number] = Segment(number, path)
    return [found[number] for number in sorted(found)]
