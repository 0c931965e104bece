"""The bound of a pool, which binds puts and never moves."""

import threading
import time

from queues.errors import QueueFull
from queues.root import Root

_POLL_SECONDS = 0.2  # while a put waits for room
_MAX_AGE_SECONDS = 1.0


class Bound:
    """How many more items each folder takes.

    Counted here and looked up again long before that can be wrong by much: ZooKeeper has no bounded folder,
    so several producers can together overshoot, each by a tenth of what was free.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._guard = threading.Lock()
        self._rooms: dict[tuple[str, str], _Room] = {}

    def take(self, queue: str, pool: str, deadline: float) -> None:
        """Take room for one item; raises QueueFull when there is none at `deadline` (monotonic seconds)."""
        room = self._rooms.get((queue, pool))
        if room is None:
            with self._guard:
                room = self._rooms.setdefault((queue, pool), _Room(self._root, queue, pool))
        while not room.take():
            if time.monotonic() >= deadline:
                raise QueueFull(queue, pool, room.bound)
            time.sleep(_POLL_SECONDS)


class _Room:
    """How many more items one folder takes."""

    def __init__(self, root: Root, queue: str, pool: str) -> None:
        self._root = root
        self._queue = queue
        self._pool = pool
        self._guard = threading.Lock()
        self._allowance = 0
        self._counted_at = -_MAX_AGE_SECONDS
        self.bound = 0

    def take(self) -> bool:
        # False when the pool is full.
        with self._guard:
            now = time.monotonic()
            if self._allowance <= 0 or now - self._counted_at > _MAX_AGE_SECONDS:
                self.bound = self._root.pools.limits(self._pool)[0].bound
                stat = self._root.session.exists(self._root.layout.queue(self._queue, self._pool))
                free = self.bound - (0 if stat is None else stat.children)
                self._allowance = free if free <= 0 else max(1, free // 10)
                self._counted_at = now
            if self._allowance <= 0:
                return False
            self._allowance -= 1
            return True
