"""Steps of many items, committed as many together as there are."""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from queues.heartbeat import Heartbeat

log = logging.getLogger(__name__)

_TOGETHER = 200  # two multis of a hundred

T = TypeVar("T")


class Settler(Generic[T]):
    """Calls `commit` with what was put, in a thread of its own: while one commit is under way, more comes."""

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        self._commit = commit
        self._inbox: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="settler", daemon=True)
        self._heartbeat = Heartbeat(self._thread)
        self._stopping = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, thing: T) -> None:
        """Commit this with the next ones."""
        self._inbox.put(thing)

    def stop(self, timeout: float | None = None) -> bool:
        """Commit what was put so far and end; False when that takes longer than `timeout` seconds."""
        self._stopping = True
        self._inbox.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def trouble(self) -> str:
        """Why nothing is committed, empty when all is well or it was asked to stop."""
        return "" if self._stopping else self._heartbeat.trouble()

    def _loop(self) -> None:
        ended = False
        while not ended:
            things = [self._inbox.get()]
            self._heartbeat.begin()
            while len(things) < _TOGETHER and not self._inbox.empty():
                things.append(self._inbox.get())
            ended = None in things
            try:
                self._commit([thing for thing in things if thing is not None])
            except Exception:  # a bug must not keep what comes after
                log.exception("what was to be committed together was not")
            self._heartbeat.rest()
