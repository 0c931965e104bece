"""The ensemble's time: due times must mean the same on every host."""

import threading
import time

from queues.errors import QueueError
from queues.names import Layout
from queues.operations import Set
from queues.session import Session, Stat
from queues.transaction import commit


class EnsembleClock:
    """Reads the ensemble's clock from the mtime of a node that it has just written."""

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._path = layout.clock
        self._lock = threading.Lock()
        self._offset_ms: int | None = None

    def now_ms(self) -> int:
        """Epoch milliseconds of the ensemble; measured once, on first use."""
        with self._lock:
            if self._offset_ms is None:
                self._offset_ms = self._measure()
        return time.time_ns() // 1_000_000 + self._offset_ms

    def _measure(self) -> int:
        self._session.ensure_path(self._path)
        before = time.time_ns()
        (stat,) = commit(self._session, [Set(self._path, b"", -1)])
        middle_ms = (before + time.time_ns()) // 2_000_000
        if not isinstance(stat, Stat):
            message = f"ZooKeeper answered a set with {stat!r}"
            raise QueueError(message)
        return stat.modified - middle_ms
