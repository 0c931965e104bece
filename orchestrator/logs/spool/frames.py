"""The format of a record in a segment: its length and CRC-32, then the two lines of a bulk request."""

import struct
import zlib
from collections.abc import Iterator

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
