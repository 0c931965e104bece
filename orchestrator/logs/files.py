"""Whole files, durable files, and locks between processes.

Standard library only: drivers and their shims use it too.
"""

import contextlib
import fcntl
import json
import math
import os
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PRIVATE = 0o600
_POLL_SECONDS = 0.005  # flock(2) has no timeout


# ---------------------------------------------------------------------- whole files
def replace_file(path: Path, data: bytes, *, mode: int | None = PRIVATE, durable: bool = False) -> None:
    """Write a file atomically: a reader sees the old or the new contents. Raises OSError.

    `mode` None: the umask decides. With `durable` the file survives a power failure once this returns.
    Threads and processes may replace the same file at the same time.
    """
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")  # process ids repeat between containers
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None and mode & 0o077:
                os.fchmod(descriptor, mode)  # independent of the umask
            file.write(data)
            if durable:
                file.flush()
                os.fsync(descriptor)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def write_json(
    path: Path, document: Mapping[str, Any], *, mode: int | None = PRIVATE, durable: bool = False
) -> None:
    """Replace a file by a JSON object, as `replace_file` does; raises OSError."""
    replace_file(path, json.dumps(document).encode("ascii"), mode=mode, durable=durable)


# ---------------------------------------------------------------------- durable files
def append(file: int, data: bytes, end: int) -> None:
    """Append to a file, durably; raises OSError, and then nothing is written."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    except OSError:
        # Also after a failed fsync: a second one would report success for data that the kernel dropped.
        with contextlib.suppress(OSError):
            os.ftruncate(file, end)
        raise


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable; raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------- locks
class FileLock:
    """An exclusive lock on a file or folder, between processes of a host and between objects of one process.

    The kernel releases it when the process ends. A forked child and an exec close
    their copies of the descriptor, so neither keeps the lock longer than its holder. The file stays after a
    release.
    """

    __slots__ = ("__weakref__", "_file", "_flags", "path")

    def __init__(self, path: Path, *, is_folder: bool = False) -> None:
        """`is_folder`: lock the folder itself, without a lock file; some file systems refuse that."""
        self.path = path
        self._flags = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        self._file = -1

    def acquire(self, *, seconds: float = 0.0) -> bool:
        """Acquire the lock within so many seconds; `math.inf` waits without end. Raises OSError."""
        file = os.open(self.path, self._flags | os.O_CLOEXEC, PRIVATE)
        try:
            is_held = _lock(file, seconds)
        except BaseException:
            os.close(file)
            raise
        if not is_held:
            os.close(file)
            return False
        self._file = file
        _held.add(self)
        return True

    def fileno(self) -> int:
        """The descriptor of the file while it is held, to read and write it; -1 otherwise."""
        return self._file

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        file, self._file = self._file, -1
        if file >= 0:
            _held.discard(self)
            os.close(file)


@contextmanager
def folder_lock(folder: Path, *, name: str = "lock", seconds: float = 0.0) -> Iterator[bool]:
    """Hold the lock file of a folder, which is created if missing; raises OSError.

    Yields False if another holder keeps it for longer than `seconds`; `math.inf` waits without end.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(folder / name)
    try:
        yield lock.acquire(seconds=seconds)
    finally:
        lock.release()


def is_locked(file: int) -> bool:
    """Whether another holder has the lock of this open file; raises OSError."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _lock(file: int, seconds: float) -> bool:
    if seconds == math.inf:
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True


_held: "weakref.WeakSet[FileLock]" = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_after_fork)
