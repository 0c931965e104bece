"""How a record stands in a segment: its length and its crc32, then the two lines of a bulk request."""

import struct
import zlib
from collections.abc import Iterator

HEADER = struct.Struct("<II")  # length of the record in bytes, crc32 of the record
MAX_RECORD_BYTES = 4 * 1024 * 1024  # a length beyond is no length: documents are cut long before
_START = b'{"create":{'  # of every record; with it the next one is found behind damaged bytes


def create_line(index: str, identity: str) -> str:
    """The first line of a record: what is to be created; the document is the second one."""
    return f'{{"create":{{"_index":"{index}","_id":"{identity}"}}}}\n'


def framed(record: bytes) -> bytes:
    """The record as it is written, in one piece."""
    return HEADER.pack(len(record), zlib.crc32(record)) + record


def frame_at(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The record at `offset` and the offset behind it; None where no whole and sound record stands."""
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
    """Records from `offset` on, each with the offset behind it, up to what is torn, damaged or the end."""
    while (found := frame_at(data, offset)) is not None:
        yield found
        offset = found[1]


def next_frame(data: bytes, offset: int) -> int | None:
    """Where the first sound record behind `offset` begins; None where there is none."""
    place = offset + 1
    while (place := data.find(_START, place + HEADER.size)) >= 0:
        start = place - HEADER.size
        if frame_at(data, start) is not None:
            return start
        place = start + 1
    return None
