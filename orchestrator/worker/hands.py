"""The threads that look at jobs: each takes the next one of an inbox."""

import queue
import threading
from collections.abc import Callable

from orchestrator.handlers.job import HeldJob
from queues.heartbeat import Heartbeat


class Hands:
    """So many threads with one inbox; `look` never raises. They last as long as the process."""

    def __init__(
        self, name: str, look: Callable[[HeldJob], None], *, threads: int, stuck_after: float
    ) -> None:
        self._look = look
        self._inbox: queue.SimpleQueue[HeldJob] = queue.SimpleQueue()
        self.put = self._inbox.put
        self._threads = [
            # Daemons, so that no long kill keeps the process from its end.
            threading.Thread(target=self._work, args=(number,), name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        self._heartbeats = [Heartbeat(thread, stuck_after=stuck_after) for thread in self._threads]

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def trouble(self) -> str:
        """Why jobs are not looked at, empty when they are: one thread that is free is enough."""
        troubles = [heartbeat.trouble() for heartbeat in self._heartbeats]
        return f"none of {len(troubles)} threads gets on; of one, {troubles[0]}" if all(troubles) else ""

    def _work(self, number: int) -> None:
        heartbeat = self._heartbeats[number]
        while True:
            job = self._inbox.get()
            heartbeat.begin()
            self._look(job)
            heartbeat.rest()
