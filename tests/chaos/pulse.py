"""A clock for bounds that hold on a busy machine, too."""

import threading
import time
from typing import Self

from queues.session import Session

_BEAT_S = 0.1


class Pulse:
    """Counts beats: each is a pause and a round trip to ZooKeeper. A context manager.

    While the machine, or the server, stands still for others, it stands still here as well. A bound in these
    seconds is one of an idle machine, and what is done late because nothing runs does not exceed it.
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
        """Since it began, in the time of an idle machine."""
        return self._beats * _BEAT_S

    def _beat(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            self._session.exists("/")
            self._stopping.wait(max(0.0, began + _BEAT_S - time.monotonic()))
            self._beats += 1
