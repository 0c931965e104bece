"""The capacity of a pool: it limits puts, never moves."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from queues.model.errors import QueueFull
from queues.store.root import Root

_MAX_AGE_SECONDS = 1.0


class Capacity:
    """The free capacity of each folder.

    One producer never exceeds it. Single puts use a count for up to one second, and for at most a tenth of
    the free capacity, before they read it again: ZooKeeper has no bounded folders, so that several
    producers together can exceed the bound.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._guard = threading.Lock()
        self._folders: dict[tuple[str, str], _FolderCapacity] = {}

    @contextmanager
    def reserve(self, queue: str, pools: Sequence[str]) -> Iterator[list[bool]]:
        """Whether there is capacity for each put, one per pool named; reserved within the context."""
        granted = {pool: self._folder(queue, pool).take(count) for pool, count in Counter(pools).items()}
        left = dict(granted)
        answers = []
        for pool in pools:
            answers.append(left[pool] > 0)
            left[pool] -= 1
        try:
            yield answers
        finally:
            for pool, count in granted.items():
                self._folder(queue, pool).settle(count)

    def error(self, queue: str, pool: str) -> QueueFull:
        """The error of a put that got no capacity."""
        return QueueFull(queue, pool, self._folder(queue, pool).bound)

    def _folder(self, queue: str, pool: str) -> "_FolderCapacity":
        folder = self._folders.get((queue, pool))
        if folder is None:
            with self._guard:
                folder = self._folders.setdefault((queue, pool), _FolderCapacity(self._root, queue, pool))
        return folder


class _FolderCapacity:
    """The free capacity of one folder."""

    def __init__(self, root: Root, queue: str, pool: str) -> None:
        self._root = root
        self._queue = queue
        self._pool = pool
        self._guard = threading.Lock()
        self._in_flight = 0  # granted, and not yet confirmed
        self._budget = 0
        self._counted_at = -_MAX_AGE_SECONDS
        self.bound = 0

    def take(self, count: int) -> int:
        """Reserve capacity for up to `count` puts; returns the number granted, to be settled afterwards."""
        with self._guard:
            if count > 1 or self._budget <= 0 or time.monotonic() - self._counted_at > _MAX_AGE_SECONDS:
                free = self._count()
                self._budget = free if count > 1 or free <= 0 else max(1, free // 10)
            granted = max(0, min(count, self._budget))
            self._budget = 0 if count > 1 else self._budget - granted
            self._in_flight += granted
            return granted

    def settle(self, granted: int) -> None:
        with self._guard:
            self._in_flight -= granted

    def _count(self) -> int:
        self.bound = self._root.pools.limits(self._pool)[0].bound
        stat = self._root.session.exists(self._root.layout.queue(self._queue, self._pool))
        self._counted_at = time.monotonic()
        return self.bound - (0 if stat is None else stat.children) - self._in_flight
