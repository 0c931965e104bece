"""Drivers that are about to start: what the workers of a host promise them before their processes exist."""

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.logs.files import FileLock, folder_lock, is_locked

# A turn takes some milliseconds; a worker that is stopped in its own must not stop others.
_WAIT_SECONDS = 2.0
_SUFFIX = ".start"


class Starts:
    """One file for each start, which says how many bytes it may come to use. Thread-safe.

    The workers of a host share the folder. Who makes a file holds the kernel's lock on it, which ends with
    the process: nobody has to judge whether a worker lives, which another container could not.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder, self._worker = folder, worker
        self._guard = threading.Lock()
        self._mine: dict[str, FileLock] = {}  # by job

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Decide about a start, alone among all threads of all workers; raises TimeoutError, OSError."""
        with folder_lock(self._folder, seconds=_WAIT_SECONDS) as is_mine:
            if not is_mine:
                message = f"another worker has been deciding about a start for {_WAIT_SECONDS:g} s"
                raise TimeoutError(message)
            yield

    def promised(self, *, but: str = "") -> list[int]:
        """The bytes of every start, except for that of one job. Only in a turn; raises OSError."""
        with self._guard:
            excepted = self._mine[but].path if but in self._mine else None
        found = (_bytes(path) for path in self._folder.glob(f"*{_SUFFIX}") if path != excepted)
        return [needed for needed in found if needed is not None]

    def add(self, job: str, needed: int) -> None:
        """Promise a job so many bytes until `remove`. Only in a turn; raises OSError."""
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
        """The processes of the job can be seen by now, or it does not start; never raises."""
        with self._guard:
            if job in self._mine:
                lock = self._mine.pop(job)
                with contextlib.suppress(OSError):  # the next look finds it without a lock
                    lock.path.unlink()
                lock.release()


def _bytes(path: Path) -> int | None:
    """What a start was promised; None for that of a worker that has ended, which is removed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # it was removed just now
        return None
    try:
        if is_locked(file):
            return int(os.read(file, 32) or b"0")
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(file)
