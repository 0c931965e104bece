"""Puts in the background, with failures reported to the caller through futures."""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from queues.errors import SessionLost
from queues.new_item import NewItem
from queues.record import Record

_MAX_PENDING = 10_000  # a further put blocks until one is done
_BATCH_SIZE = 1_000  # puts per batch


class Background:
    """One thread that puts the pending items in batches."""

    def __init__(self, put: Callable[[str, Sequence[NewItem]], Sequence[Record | Exception]]) -> None:
        self._put_many = put
        self._inbox: queue.Queue[tuple[str, NewItem, Future[Record]] | None] = queue.Queue(_MAX_PENDING)
        self._guard = threading.Condition()
        self._pending = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, queue_: str, item: NewItem) -> "Future[Record]":
        """Put soon, batched with others; the future has the record or the error of the put."""
        future: Future[Record] = Future()
        with self._guard:
            if self._closed:
                raise SessionLost("the producer was closed; nothing was put")
            self._pending += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="background-puts", daemon=True)
                self._thread.start()
        self._inbox.put((queue_, item, future))
        return future

    def flush(self, timeout: float) -> bool:
        """Wait until all puts so far are done; False if some are not after `timeout` seconds."""
        with self._guard:
            return self._guard.wait_for(lambda: self._pending == 0, timeout)

    def close(self, timeout: float) -> bool:
        """Refuse further puts, and wait for the pending ones as `flush` does."""
        with self._guard:
            self._closed = True
        done = self.flush(timeout)
        if self._thread is not None:
            self._inbox.put(None)
        return done

    def _loop(self) -> None:
        while True:
            batch = [self._inbox.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < _BATCH_SIZE:
                    batch.append(self._inbox.get_nowait())
            there = [entry for entry in batch if entry is not None]
            entries = [entry for entry in there if entry[2].set_running_or_notify_cancel()]
            self._count_down(len(there) - len(entries))
            for queue_ in dict.fromkeys(entry[0] for entry in entries):
                self._put(queue_, [(item, future) for name, item, future in entries if name == queue_])
            if len(there) < len(batch):
                return

    def _put(self, queue_: str, entries: list[tuple[NewItem, "Future[Record]"]]) -> None:
        try:
            outcomes: list[Record | BaseException] = list(
                self._put_many(queue_, [item for item, _ in entries])
            )
        except Exception as error:  # noqa: BLE001 - reported through the futures
            outcomes = [error] * len(entries)
        for (_, future), outcome in zip(entries, outcomes, strict=True):
            if isinstance(outcome, Record):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)
        self._count_down(len(entries))

    def _count_down(self, done: int) -> None:
        with self._guard:
            self._pending -= done
            self._guard.notify_all()
