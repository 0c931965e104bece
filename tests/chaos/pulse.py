"""A clock for time limits that also hold on a busy machine."""

import threading
import time
from typing import Self

from queues.session import Session

_BEAT_S = 0.1


class Pulse:
    """Counts beats: each is a pause and a round trip to ZooKeeper. A context manager.

    It does not advance while the machine or the server is stalled: a limit in these seconds is that of an
    idle machine.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stopping = threading.Event()
        self._beats = 0
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """Seconds since the start, as on an idle machine."""
        return self._beats * _BEAT_S

    def _beat(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            self._session.exists("/")
            self._stopping.wait(max(0.0, began + _BEAT_S - time.monotonic()))
            self._beats += 1
