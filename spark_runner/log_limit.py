"""Keeps what a driver prints from filling the disk: the last part of each log stays, the end is what tells.

Standard library only: the shim needs it.
"""

import contextlib
import os
from pathlib import Path

from spark_runner.process import RUN_DIR_VARIABLE

MAX_LOG_BYTES = 100 * 1024 * 1024  # as for Spark's own log; with the part before it, twice as much
_COPY_BYTES = 1 << 20
PRINTED = ("stdout.log", "stderr.log")
OLDER = ".1"  # appended to the name of a log: the part before it


def limit_log(path: Path, max_bytes: int = MAX_LOG_BYTES) -> bool:
    """Begin a log anew when it is too long; what it ended with becomes the older part. Whether it did.

    Who writes it has it open for appending, so the file stays the same one and is cut. What is written
    between the copy and the cut is lost. A disk that is full costs the older part, never the cut.
    """
    try:
        with path.open("r+b") as log:
            size = os.fstat(log.fileno()).st_size
            if size <= max_bytes:
                return False
            with contextlib.suppress(OSError):
                _keep(log.fileno(), max(0, size - max_bytes), Path(f"{path}{OLDER}"))
            log.truncate(0)
    except OSError:  # not there yet, or removed meanwhile
        return False
    return True


def limit_logs(directory: Path) -> None:
    """Limit what a driver prints, in its run directory; Spark's own log limits itself."""
    for name in PRINTED:
        limit_log(directory / name)


def limit_own_logs() -> None:
    """Limit what this driver prints where no shim does it: on a node of a cluster."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if directory and not Path(directory, "shim.json").exists():
        limit_logs(Path(directory))


def _keep(log: int, start: int, older: Path) -> None:
    draft = Path(f"{older}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            while chunk := os.pread(log, _COPY_BYTES, start):
                file.write(chunk)
                start += len(chunk)
        draft.replace(older)
    finally:
        draft.unlink(missing_ok=True)
