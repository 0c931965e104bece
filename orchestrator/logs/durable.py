"""Files that are on the disk when a call returns."""

import contextlib
import os
from pathlib import Path


def append(file: int, data: bytes, end: int) -> None:
    """Write at the end of a file; on the disk when this returns. Raises OSError, with nothing written."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    except OSError:
        # Also after a failed fsync: a second one would say yes to what was dropped.
        with contextlib.suppress(OSError):
            os.ftruncate(file, end)
        raise


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has; raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
