"""Keeps a spool on the disk and small: syncs it at an interval, compresses what waits for long."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.logs.spool.position import Position
from orchestrator.logs.spool.segments import segments_in

_AHEAD = 2  # segments behind the delivered one that are read within moments, and so stay as they are
_STOP_SECONDS = 5.0
_ALSO_SECONDS = 5.0


class FsyncThread:
    """A thread beside the writer. `current` gives the open file and the number of the segment.

    `also` is called now and then, in this thread.
    """

    def __init__(
        self,
        folder: Path,
        interval: float,
        *,
        current: Callable[[], tuple[int, int]],
        also: Callable[[], None] = lambda: None,
    ) -> None:
        self.dirty = False  # set by the writer; one assignment is all that a log call pays for the disk
        self.delivered = Position()
        self._folder, self._interval, self._current, self._also = folder, interval, current, also
        self._sealed: list[int] = []  # files that are complete, not yet synced
        self._guard = threading.Lock()  # of a sync
        self._compressed = 0  # segments up to here were looked at
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-spool", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def seal(self, file: int) -> None:
        """Take over a file to which nobody writes any more."""
        self._sealed.append(file)

    def sync(self) -> None:
        """Bring to the disk what was written until now; raises OSError."""
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
        """Sync for the last time."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)
        with contextlib.suppress(OSError):
            self.sync()

    def _run(self) -> None:
        told = time.monotonic() - _ALSO_SECONDS
        while not self._stopping.wait(self._interval):
            with contextlib.suppress(OSError):  # a full or failing disk: the writer counts what it costs
                self.sync()
                self._compress()
            if (now := time.monotonic()) - told >= _ALSO_SECONDS:
                told = now
                self._also()

    def _compress(self) -> None:
        current = self._current()[1]
        if current - 1 <= self._compressed:
            return
        self._compressed = current - 1  # first: what does not work now is tried again with the next segment
        for segment in segments_in(self._folder):
            if self.delivered.segment + _AHEAD < segment.number < current and not segment.is_compressed:
                with contextlib.suppress(FileNotFoundError, FileExistsError):  # dropped, or in hand already
                    segment.compress()
                if self._stopping.is_set():
                    return
