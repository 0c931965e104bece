"""The fsync thread of a spool: syncs it at an interval, and compresses segments that wait long."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.logs.spool.position import Position
from orchestrator.logs.spool.segments import segments_in

_AHEAD = 2  # segments after the delivered one: they are read soon, so they are not compressed
_STOP_SECONDS = 5.0
_ALSO_SECONDS = 5.0  # between calls of `also`


class FsyncThread:
    """A thread beside the writer. `current` returns the open file and the number of its segment.

    `also` is called periodically in this thread.
    """

    def __init__(
        self,
        folder: Path,
        interval: float,
        *,
        current: Callable[[], tuple[int, int]],
        also: Callable[[], None] = lambda: None,
    ) -> None:
        self.dirty = False  # set by the writer; a log call does nothing else for durability
        self.delivered = Position()
        self._folder, self._interval, self._current, self._also = folder, interval, current, also
        self._sealed: list[int] = []  # complete files that are not yet synced
        self._guard = threading.Lock()  # one sync at a time
        self._compressed = 0  # the last segment that was considered
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-spool", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def seal(self, file: int) -> None:
        """Take a complete file; it is synced and closed later."""
        self._sealed.append(file)

    def sync(self) -> None:
        """Sync all data written so far; raises OSError."""
        with self._guard:
            while self._sealed:
                file = self._sealed.pop(0)
                try:
                    os.fdatasync(file)
                finally:
                    os.close(file)
            if self.dirty:
                self.dirty = False
                os.fdatasync(self._current()[0])

    def stop(self) -> None:
        """Stop the thread, and sync once more."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)
        with contextlib.suppress(OSError):
            self.sync()

    def _run(self) -> None:
        called_at = time.monotonic() - _ALSO_SECONDS
        while not self._stopping.wait(self._interval):
            with contextlib.suppress(OSError):  # a full or failing disk: the writer counts the lost records
                self.sync()
                self._compress()
            if (now := time.monotonic()) - called_at >= _ALSO_SECONDS:
                called_at = now
                self._also()

    def _compress(self) -> None:
        current = self._current()[1]
        if current - 1 <= self._compressed:
            return
        self._compressed = current - 1  # before: a failure is retried with the next segment
        for segment in segments_in(self._folder):
            if self.delivered.segment + _AHEAD < segment.number < current and not segment.is_compressed:
                with contextlib.suppress(FileNotFoundError, FileExistsError):  # dropped, or being compressed
                    segment.compress()
                if self._stopping.is_set():
                    return
