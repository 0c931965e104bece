"""Handler threads: each takes items from one inbox that they share."""

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from queues.consumer.heartbeat import STUCK_SECONDS, Heartbeat

Item = TypeVar("Item")


class HandlerThreads(Generic[Item]):
    """A number of threads with one inbox."""

    def __init__(self, name: str, *, threads: int, stuck_after: float = STUCK_SECONDS) -> None:
        self.name = name
        self._work: Callable[[Item], None] = lambda _item: None
        self._stopping = False
        self._inbox: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._threads = [
            # Daemon threads: a long kill must not delay the end of the process.
            threading.Thread(target=self._loop, args=(number,), name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        self._heartbeats = [Heartbeat(thread, stuck_after=stuck_after) for thread in self._threads]

    def start(self, work: Callable[[Item], None]) -> None:
        """Call `work` with each item from now on; it must not raise."""
        self._work = work
        for thread in self._threads:
            thread.start()

    def put(self, item: Item) -> None:
        """Add an item to the inbox."""
        self._inbox.put(item)

    def stop(self) -> None:
        """End each thread after the items that are in the inbox now."""
        self._stopping = True
        for _ in self._threads:
            self._inbox.put(None)

    def join(self) -> None:
        """Wait for the end of the threads."""
        for thread in self._threads:
            thread.join()

    def trouble(self) -> str:
        """Why items are not handled; empty while a thread makes progress, and after `stop`."""
        if self._stopping:
            return ""
        troubles = [heartbeat.trouble() for heartbeat in self._heartbeats]
        return (
            f"none of {len(troubles)} threads makes progress; of one, {troubles[0]}" if all(troubles) else ""
        )

    def _loop(self, number: int) -> None:
        heartbeat = self._heartbeats[number]
        while (item := self._inbox.get()) is not None:
            heartbeat.begin()
            self._work(item)
            heartbeat.rest()
