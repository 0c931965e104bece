"""Lines of an archive's file: the end of the last whole one, those behind a place, and new ones."""

import json
import os
from pathlib import Path

from loguru import logger

from orchestrator.archive.errors import ArchiveError

_START = b'{"run_key": "'  # of every line that an archive has written
_CHUNK_BYTES = 64 * 1024


def line_head(run_key: str) -> bytes:
    """How the line of this job begins, and that of no other."""
    return b'{"run_key": ' + json.dumps(run_key).encode("ascii") + b","


def whole_lines_end(file: int, path: Path) -> int:
    """The end of the last whole line in bytes; what a crash has left behind it is cut off.

    Raises ArchiveError for a file that no archive has written; nothing of it is cut then.
    """
    size = os.fstat(file).st_size
    end = _last_newline(file, size) + 1
    first, torn = os.pread(file, len(_START), 0), os.pread(file, len(_START), end)
    if not (_begins_line(torn) or _is_blank(torn)) or (end and not _begins_line(first)):
        raise ArchiveError(
            f"{path} is not only what an archive writes; move it away, or set archive.dir to another folder"
        )
    if end < size:
        # Its job was not removed: that comes after the whole line is on the disk.
        logger.warning("{}: the last {:,} bytes are a torn line of a crash; cut off", path, size - end)
        os.ftruncate(file, end)
    return end


def found_behind(path: Path, offset: int, heads: tuple[bytes, ...]) -> set[bytes]:
    """Which of these lines stand behind `offset` in a file; they are on the disk then."""
    found = set[bytes]()
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return found
    with file:
        if offset:
            # Shorter than it was, or another file: nothing is known of it, so all of it is looked through.
            before = os.pread(file.fileno(), 1, offset - 1)
            file.seek(offset if before == b"\n" else 0)
        for line in file:
            if line.startswith(heads) and line.endswith(b"\n"):
                found.update(head for head in heads if line.startswith(head))
        if found:  # who wrote it may have ended before it was
            os.fsync(file.fileno())
    return found


def _begins_line(data: bytes) -> bool:
    return data == _START[: len(data)]


def _is_blank(data: bytes) -> bool:
    return not data.strip(b"\0")  # what a power failure leaves on some file systems


def _last_newline(file: int, size: int) -> int:
    """Where the last newline stands; -1 without one."""
    end = size
    while end > 0:
        start = max(0, end - _CHUNK_BYTES)
        place = os.pread(file, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place
        end = start
    return -1
