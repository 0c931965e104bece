"""Drivers that are about to start: the memory that is promised to them before their processes exist."""

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.logs.files import FileLock, folder_lock, is_locked

# A turn takes some milliseconds; a worker that is suspended in its turn must not block the others.
_WAIT_SECONDS = 2.0
_SUFFIX = ".start"


class Starts:
    """One file per start, with the number of bytes that it may use. Thread-safe.

    The workers of a host share the folder. The worker that creates a file holds the kernel's lock on it,
    which ends with its process. So no worker has to judge whether another one is alive, which it could not
    across containers.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder, self._worker = folder, worker
        self._guard = threading.Lock()
        self._mine: dict[str, FileLock] = {}  # by job

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the turn to decide about a start, alone among all workers; raises TimeoutError, OSError."""
        with folder_lock(self._folder, seconds=_WAIT_SECONDS) as is_mine:
            if not is_mine:
                message = f"another worker has been deciding about a start for {_WAIT_SECONDS:g} s"
                raise TimeoutError(message)
            yield

    def promised(self, *, but: str = "") -> list[int]:
        """The bytes of every start except that of one job. Only in a turn; raises OSError."""
        with self._guard:
            excepted = self._mine[but].path if but in self._mine else None
        found = (_bytes(path) for path in self._folder.glob(f"*{_SUFFIX}") if path != excepted)
        return [needed for needed in found if needed is not None]

    def add(self, job: str, needed: int) -> None:
        """Promise these bytes to a job until `remove`. Only in a turn; raises OSError."""
        with self._guard:
            if job not in self._mine:
                lock = FileLock(self._folder / f"{job}.{self._worker}{_SUFFIX}")
                if not lock.acquire():
                    message = f"{lock.path} is held by another process"
                    raise BlockingIOError(message)
                self._mine[job] = lock
            file = self._mine[job].fileno()
            os.ftruncate(file, 0)
            os.pwrite(file, str(needed).encode("ascii"), 0)

    def remove(self, job: str) -> None:
        """End the promise of a job; never raises."""
        with self._guard:
            if job in self._mine:
                lock = self._mine.pop(job)
                with contextlib.suppress(OSError):  # the next look finds it without a lock
                    lock.path.unlink()
                lock.release()


def _bytes(path: Path) -> int | None:
    """The bytes promised to a start; None if its worker has ended, and its file is removed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # removed since the listing
        return None
    try:
        if is_locked(file):
            return int(os.read(file, 32) or b"0")
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(file)
