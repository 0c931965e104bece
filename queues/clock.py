"""The ensemble's time: due times must mean the same on every host."""

import threading
import time

from queues.errors import QueueError
from queues.names import Layout
from queues.operations import Set
from queues.session import Session, Stat
from queues.transaction import commit

_MEASURE_AGAIN_MS = 600_000


class EnsembleClock:
    """Reads the ensemble's clock from the mtime of a node that it has just written."""

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._path = layout.clock
        self._lock = threading.Lock()
        self._offset_ms: int | None = None
        self._measured_ms = 0

    def now_ms(self) -> int:
        """Epoch milliseconds of the ensemble; measured on first use and again every ten minutes."""
        with self._lock:
            # The monotonic clock: a step of the host's own must not move due times.
            now = time.monotonic_ns() // 1_000_000
            if self._offset_ms is None or now - self._measured_ms > _MEASURE_AGAIN_MS:
                self._offset_ms = self._measure()
                self._measured_ms = now
            return time.monotonic_ns() // 1_000_000 + self._offset_ms

    def _measure(self) -> int:
        self._session.ensure_path(self._path)
        before = time.monotonic_ns()
        (stat,) = commit(self._session, [Set(self._path, b"", -1)])
        middle_ms = (before + time.monotonic_ns()) // 2_000_000
        if not isinstance(stat, Stat):
            message = f"ZooKeeper answered a set with {stat!r}"
            raise QueueError(message)
        return stat.modified - middle_ms
