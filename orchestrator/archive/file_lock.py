"""A lock between processes of one host; it ends with its process."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.archive.errors import ArchiveError

_WAIT_SECONDS = 10.0  # an fsync of a busy disk takes up to some seconds
_POLL_SECONDS = 0.005


@contextmanager
def held_file(path: Path) -> Iterator[None]:
    """Hold the lock file, which is made where it is not there; raises ArchiveError, OSError."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                # Not without end: a process that is stopped must not stop all others.
                if time.monotonic() > deadline:
                    raise ArchiveError(
                        f"{path} has been held by another process for {_WAIT_SECONDS:g} s"
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(file)
