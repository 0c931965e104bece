"""Drivers that are about to start: the memory that is promised to them before their processes exist."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_runner.file_lock import alone_in

# A turn takes some milliseconds; a worker that is suspended in its turn must not block the others.
_WAIT_SECONDS = 2.0
_LOOK_SECONDS = 0.005  # flock(2) has no timeout
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
        self._mine: dict[str, tuple[Path, int]] = {}  # by job: the file, and its descriptor

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the turn to decide about a start, alone among all workers; raises TimeoutError, OSError."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            with alone_in(self._folder) as is_mine:
                if is_mine:
                    yield
                    return
            if time.monotonic() >= deadline:
                message = f"another worker has been deciding about a start for {_WAIT_SECONDS:g} s"
                raise TimeoutError(message)
            time.sleep(_LOOK_SECONDS)

    def promised(self, *, but: str = "") -> list[int]:
        """The bytes of every start except that of one job. Only in a turn; raises OSError."""
        with self._guard:
            excepted = self._mine[but][0] if but in self._mine else None
        found = (_bytes(path) for path in self._folder.glob(f"*{_SUFFIX}") if path != excepted)
        return [needed for needed in found if needed is not None]

    def add(self, job: str, needed: int) -> None:
        """Promise these bytes to a job until `remove`. Only in a turn; raises OSError."""
        with self._guard:
            if job not in self._mine:
                path = self._folder / f"{job}.{self._worker}{_SUFFIX}"
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._mine[job] = path, file
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _, file = self._mine[job]
            os.ftruncate(file, 0)
            os.pwrite(file, str(needed).encode("ascii"), 0)

    def remove(self, job: str) -> None:
        """End the promise of a job; never raises."""
        with self._guard:
            if job in self._mine:
                path, file = self._mine.pop(job)
                with contextlib.suppress(OSError):  # the next reader finds it without a lock
                    path.unlink()
                os.close(file)


def _bytes(path: Path) -> int | None:
    """The bytes promised to a start; None if its worker has ended, and its file is removed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # removed since the listing
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.read(file, 32) or b"0")
    else:
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(file)
