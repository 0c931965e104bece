"""Lines of an archive file: finding the end of the last whole one, and lines behind an offset."""

import json
import os
from pathlib import Path

from loguru import logger

from orchestrator.archive.errors import ArchiveError

_START = b'{"run_key": "'  # of every line that an archive has written
_CHUNK_BYTES = 64 * 1024


def line_head(run_key: str) -> bytes:
    """The beginning of the line of this job, which no other line has."""
    return b'{"run_key": ' + json.dumps(run_key).encode("ascii") + b","


def whole_lines_end(file: int, path: Path) -> int:
    """The end of the last whole line in bytes; a torn line of a crash behind it is cut off.

    Raises ArchiveError for a file that no archive has written, and does not cut it.
    """
    size = os.fstat(file).st_size
    end = _last_newline(file, size) + 1
    first, torn = os.pread(file, len(_START), 0), os.pread(file, len(_START), end)
    if not (_begins_line(torn) or _is_blank(torn)) or (end and not _begins_line(first)):
        raise ArchiveError(
            f"{path} contains lines of another program; move it, or set archive.dir to another folder"
        )
    if end < size:
        # Its job still exists: a job is removed only once its whole line is on the disk.
        logger.warning("{}: the last {:,} bytes are a torn line of a crash; cut off", path, size - end)
        os.ftruncate(file, end)
    return end


def found_behind(path: Path, offset: int, heads: tuple[bytes, ...]) -> set[bytes]:
    """The heads of those lines that are in a file behind `offset`; the lines are on the disk then."""
    found = set[bytes]()
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return found
    with file:
        if offset:
            # If the file is shorter than it was, or another one, all of it is searched.
            before = os.pread(file.fileno(), 1, offset - 1)
            file.seek(offset if before == b"\n" else 0)
        for line in file:
            if line.startswith(heads) and line.endswith(b"\n"):
                found.update(head for head in heads if line.startswith(head))
        if found:  # their writer may have died before its fsync
            os.fsync(file.fileno())
    return found


def _begins_line(data: bytes) -> bool:
    return data == _START[: len(data)]


def _is_blank(data: bytes) -> bool:
    return not data.strip(b"\0")  # a power failure leaves zeros on some file systems


def _last_newline(file: int, size: int) -> int:
    """The offset of the last newline; -1 without one."""
    end = size
    while end > 0:
        start = max(0, end - _CHUNK_BYTES)
        place = os.pread(file, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place
        end = start
    return -1
