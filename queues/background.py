"""Puts in the background, whose failures reach the caller all the same."""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from queues.errors import SessionLost
from queues.new_item import NewItem
from queues.record import Record

_MAX_AT_HAND = 10_000  # one more waits until the first is done
_PER_ROUND = 1_000  # those that travel together


class Background:
    """One thread that puts what has come together, round by round."""

    def __init__(self, put: Callable[[str, Sequence[NewItem]], Sequence[Record | Exception]]) -> None:
        self._put_many = put
        self._inbox: queue.Queue[tuple[str, NewItem, Future[Record]] | None] = queue.Queue(_MAX_AT_HAND)
        self._guard = threading.Condition()
        self._at_hand = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, queue_: str, item: NewItem) -> "Future[Record]":
        """Put soon, together with others; the future has the record, or raises what a put would."""
        future: Future[Record] = Future()
        with self._guard:
            if self._closed:
                raise SessionLost("the producer was closed; nothing was put")
            self._at_hand += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="background-puts", daemon=True)
                self._thread.start()
        self._inbox.put((queue_, item, future))
        return future

    def flush(self, timeout: float) -> bool:
        """Wait until all so far are done; False when some are not after `timeout` seconds."""
        with self._guard:
            return self._guard.wait_for(lambda: self._at_hand == 0, timeout)

    def close(self, timeout: float) -> bool:
        """Take no more, and wait for those at hand as `flush` does."""
        with self._guard:
            self._closed = True
        done = self.flush(timeout)
        if self._thread is not None:
            self._inbox.put(None)
        return done

    def _loop(self) -> None:
        while True:
            round_ = [self._inbox.get()]
            with contextlib.suppress(queue.Empty):
                while len(round_) < _PER_ROUND:
                    round_.append(self._inbox.get_nowait())
            there = [entry for entry in round_ if entry is not None]
            entries = [entry for entry in there if entry[2].set_running_or_notify_cancel()]
            self._count_down(len(there) - len(entries))
            for queue_ in dict.fromkeys(entry[0] for entry in entries):
                self._put(queue_, [(item, future) for name, item, future in entries if name == queue_])
            if len(there) < len(round_):
                return

    def _put(self, queue_: str, entries: list[tuple[NewItem, "Future[Record]"]]) -> None:
        try:
            outcomes: list[Record | BaseException] = list(
                self._put_many(queue_, [item for item, _ in entries])
            )
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the futures
            outcomes = [error] * len(entries)
        for (_, future), outcome in zip(entries, outcomes, strict=True):
            if isinstance(outcome, Record):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)
        self._count_down(len(entries))

    def _count_down(self, done: int) -> None:
        with self._guard:
            self._at_hand -= done
            self._guard.notify_all()
