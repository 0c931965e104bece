"""Keeps the logs of a driver from filling the disk; the last part of each log, the most useful one, stays.

A file `<name>.cut` beside a log records how much was cut, so that a reader can keep its position. The shim
imports this module, so it uses the standard library alone.
"""

import contextlib
import json
import os
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from spark_runner.protocol.plain_file import parse_json, read_plain
from spark_runner.protocol.process import RUN_DIR_VARIABLE

MAX_LOG_BYTES = 100 * 1024 * 1024  # of one log; with its older part, twice as much
_COPY_BYTES = 1 << 20
_FOLLOWED = 4  # times the limit that may be written while a log is cut; output beyond that is lost
LIMITED = ("stdout.log", "stderr.log", "spark.log")  # their writers have them open for appending
OLDER = ".1"  # suffix of the older part of a log
_MAX_NOTE_BYTES, _MAX_OFFSET = 1024, 1 << 62
CUT = ".cut"  # suffix of the file that holds the `Cut` of a log


@dataclass(frozen=True, slots=True)
class Cut:
    """The part that was cut from a log, in bytes since its beginning."""

    total: int = 0  # bytes before the first one that the log holds now
    older_end: int = 0  # end of the older part
    pending: int = 0  # minimum size of a log that is being cut right now; 0 = no cut is in progress


def read_cut(log: Path) -> Cut:
    """The part that was cut from this log so far."""
    try:
        cut = Cut(**parse_json(read_plain(Path(f"{log}{CUT}"), _MAX_NOTE_BYTES)))
    except (OSError, ValueError, TypeError):
        return Cut()
    # A driver of this user could write it.
    is_sound = all(type(each) is int and 0 <= each < _MAX_OFFSET for each in astuple(cut))
    return cut if is_sound else Cut()


def limit_log(path: Path, max_bytes: int = MAX_LOG_BYTES) -> bool:
    """Truncate a log that is too long, and keep its end as the older part; returns whether it did.

    The writer has the log open for appending, so the file stays the same one and is truncated. Output between
    the last look at its size and the cut, two system calls, is lost. More is lost only if the writer is
    faster than the copy for `_FOLLOWED` times the limit. On a full disk the older part is lost, but the cut
    still happens.
    """
    try:
        # A driver of another user owns its log: without O_NONBLOCK a lease on it would block for 45 s.
        with os.fdopen(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC), "r+b") as log:
            if os.fstat(log.fileno()).st_size <= max_bytes:
                return False
            _cut(log.fileno(), path, max_bytes)
    except OSError:  # not there yet, or removed meanwhile
        return False
    return True


def limit_logs(directory: Path) -> None:
    """Limit the logs of a driver and its Spark in its run directory."""
    for name in LIMITED:
        limit_log(directory / name)


def limit_own_logs() -> None:
    """Limit the logs of this driver on a node of a cluster, where no shim does that."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if directory and not Path(directory, "shim.json").exists():
        limit_logs(Path(directory))


def _cut(log: int, path: Path, max_bytes: int) -> None:
    cut, older_end = read_cut(path), 0
    try:
        older_end = cut.total + _keep(log, path, cut, max_bytes)
    except OSError:  # the older part is in an unknown state
        with contextlib.suppress(OSError):
            Path(f"{path}{OLDER}").unlink()
    size = os.fstat(log).st_size
    os.ftruncate(log, 0)
    with contextlib.suppress(OSError):
        _note(path, Cut(cut.total + size, older_end))


def _keep(log: int, path: Path, cut: Cut, max_bytes: int) -> int:
    """Copy the end of a log, at most `max_bytes`; returns the offset behind the copied part.

    Output that arrives meanwhile is copied too. If it exceeds the limit, a new older part begins, with space
    for half of the limit.
    """
    size = os.fstat(log).st_size
    most, space = size + _FOLLOWED * max_bytes, 0
    while True:
        start = max(0, size - max_bytes + space)
        end = _replace(log, path, cut, start, size)
        with Path(f"{path}{OLDER}").open("ab", 0) as file:
            while (size := os.fstat(log).st_size) != end and size - start <= max_bytes:
                end = copy_part(log, file.fileno(), end, size)
        if size == end or size > most:
            return end
        space = max_bytes // 2


def _replace(log: int, path: Path, cut: Cut, start: int, end: int) -> int:
    """Replace the older part by a part of the log; returns the offset behind it."""
    draft = Path(f"{path}{OLDER}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", 0) as file:
            end = copy_part(log, file.fileno(), start, end)
        _note(path, Cut(cut.total, cut.older_end, end))  # from here on both parts change
        draft.replace(f"{path}{OLDER}")
    finally:
        draft.unlink(missing_ok=True)
    return end


def copy_part(source: int, target: int, start: int, end: int) -> int:
    """Copy bytes from one open file to another; returns the offset behind the last one."""
    while chunk := os.pread(source, min(_COPY_BYTES, end - start), start):
        while chunk:
            written = os.write(target, chunk)
            chunk, start = chunk[written:], start + written
    return start


def _note(path: Path, cut: Cut) -> None:
    draft = Path(f"{path}{CUT}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        json.dump(asdict(cut), file)
    draft.replace(f"{path}{CUT}")
