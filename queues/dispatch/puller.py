"""Claims on demand, for callers with their own loop."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Self

from queues.claims.claim import Claim
from queues.claims.transitions import run_transitions
from queues.consumer.consumer import RESCAN_SECONDS, Consumer
from queues.model.names import DEFAULT_POOL
from queues.queue_set import QueueSet


class Puller:
    """Claims as many items as the caller requests; its own consumer finds them.

    Use as a context manager, or call `start` and `stop`. `claim` may be called by several threads.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        queues: Sequence[str],
        *,
        pools: Mapping[str, int] | Sequence[str] | None = (DEFAULT_POOL,),
        rescan_seconds: float = RESCAN_SECONDS,
    ) -> None:
        self._ready = threading.Condition()
        self._claims: deque[Claim] = deque()
        self._wanted = 0
        self._consumer = Consumer(
            queue_set,
            queues,
            hand_out=self._take,
            capacity=lambda _queue: self._wanted - len(self._claims),
            total=lambda: self._wanted - len(self._claims),
            pools=pools,
            rescan_seconds=rescan_seconds,
        )

    def start(self) -> Self:
        """Start to look for items; none is claimed before a call of `claim`."""
        self._consumer.start()
        return self

    def stop(self) -> None:
        """Claim nothing more, and release the items that no caller has fetched."""
        self._consumer.stop()
        with self._ready:
            left, self._claims = list(self._claims), deque()
        run_transitions([claim.releasing() for claim in left])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def claim(self, count: int = 1, *, timeout: float = 0.0) -> list[Claim]:
        """Up to `count` items, as soon as there is one; empty after `timeout` seconds without one.

        Each is held until it is committed with `release`, removed, released or abandoned.
        """
        deadline = time.monotonic() + timeout
        with self._ready:
            self._wanted += count
            try:
                self._consumer.look_again()
                while not self._claims and self._ready.wait(max(0.0, deadline - time.monotonic())):
                    pass
                return [self._claims.popleft() for _ in range(min(count, len(self._claims)))]
            finally:
                self._wanted -= count

    def _take(self, claim: Claim) -> None:
        with self._ready:
            self._claims.append(claim)
            self._ready.notify()
