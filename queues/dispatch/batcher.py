"""Collects values that arrive while a commit runs, and commits them together."""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from queues.consumer.heartbeat import Heartbeat

log = logging.getLogger(__name__)

_BATCH = 200  # two multis of a hundred

T = TypeVar("T")


class Batcher(Generic[T]):
    """Collects values and passes them to `commit` in batches, in its own thread: one batch at a time."""

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        self._commit = commit
        self._inbox: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="batcher", daemon=True)
        self._heartbeat = Heartbeat(self._thread)
        self._stopping = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, value: T) -> None:
        """Commit this value with the next batch."""
        self._inbox.put(value)

    def stop(self, timeout: float | None = None) -> bool:
        """Commit what was put so far, then end; False when that takes longer than `timeout` seconds."""
        self._stopping = True
        self._inbox.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def trouble(self) -> str:
        """Why nothing is committed; empty when commits make progress, and after `stop`."""
        return "" if self._stopping else self._heartbeat.trouble()

    def _loop(self) -> None:
        ended = False
        while not ended:
            values = [self._inbox.get()]
            self._heartbeat.begin()
            while len(values) < _BATCH and not self._inbox.empty():
                values.append(self._inbox.get())
            ended = None in values
            try:
                self._commit([value for value in values if value is not None])
            except Exception:  # a bug in one batch must not stop later ones
                log.exception("a batch was not committed")
            self._heartbeat.rest()
