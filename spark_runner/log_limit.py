"""Keeps what a driver says from filling the disk: the last part of each log stays, the end is what tells.

Beside a log that was cut stands `<name>.cut`: how much, so that who reads along knows where he is. Standard
library only: the shim needs it.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from spark_runner.process import RUN_DIR_VARIABLE

MAX_LOG_BYTES = 100 * 1024 * 1024  # with the part before it, twice as much
_COPY_BYTES = 1 << 20
_ROUNDS = 100  # of copying what has come since the last one
LIMITED = ("stdout.log", "stderr.log", "spark.log")  # whoever writes them has them open for appending
OLDER = ".1"  # appended to the name of a log: the part before it
CUT = ".cut"  # appended to the name of a log: a `Cut`


@dataclass(frozen=True, slots=True)
class Cut:
    """What was cut from a log, in bytes since its beginning."""

    total: int = 0  # so many stood before the first one that is in the log now
    older_end: int = 0  # behind the last one of the older part
    pending: int = 0  # it is being cut just now, and had at least this size; 0 = it is not


def read_cut(log: Path) -> Cut:
    """What was cut from it by now."""
    try:
        return Cut(**json.loads(Path(f"{log}{CUT}").read_bytes()))
    except (OSError, ValueError, TypeError):
        return Cut()


def limit_log(path: Path, max_bytes: int = MAX_LOG_BYTES) -> bool:
    """Begin a log anew when it is too long; what it ended with becomes the older part. Whether it did.

    Who writes it has it open for appending, so the file stays the same one and is cut. What is written
    between the last look at its size and the cut, two system calls, is lost. A disk that is full costs the
    older part, never the cut.
    """
    try:
        with path.open("r+b") as log:
            if os.fstat(log.fileno()).st_size <= max_bytes:
                return False
            _cut(log.fileno(), path, max_bytes)
    except OSError:  # not there yet, or removed meanwhile
        return False
    return True


def limit_logs(directory: Path) -> None:
    """Limit what a driver and its Spark say, in its run directory."""
    for name in LIMITED:
        limit_log(directory / name)


def limit_own_logs() -> None:
    """Limit what this driver says where no shim does it: on a node of a cluster."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if directory and not Path(directory, "shim.json").exists():
        limit_logs(Path(directory))


def _cut(log: int, path: Path, max_bytes: int) -> None:
    cut, older = read_cut(path), Path(f"{path}{OLDER}")
    older_end = cut.older_end
    with contextlib.suppress(OSError):
        older_end = cut.total + _keep(log, path, older, cut, max_bytes)
    size = os.fstat(log).st_size
    os.ftruncate(log, 0)
    with contextlib.suppress(OSError):
        _note(path, Cut(cut.total + size, older_end))


def _keep(log: int, path: Path, older: Path, cut: Cut, max_bytes: int) -> int:
    """Copy the end of a log; returns the offset in it behind what was copied."""
    draft = Path(f"{older}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", 0) as file:
            end = _copy(log, file.fileno(), max(0, os.fstat(log).st_size - max_bytes))
            _note(path, Cut(cut.total, cut.older_end, end))  # from here on both parts change
            draft.replace(older)
            for _ in range(_ROUNDS):
                if os.fstat(log).st_size == end:
                    break
                end = _copy(log, file.fileno(), end)
        return end
    finally:
        draft.unlink(missing_ok=True)


def _copy(source: int, target: int, start: int) -> int:
    while chunk := os.pread(source, _COPY_BYTES, start):
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
