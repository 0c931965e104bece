"""Delivers records by threads, as fast as the target takes them, and stops its producer otherwise."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Any, Self

from spark_runner.push.batch import Batch, DeadLetter, Destination, Portion, Record, buffer_size, total_rows
from spark_runner.push.errors import DeliveryError, PushEnded
from spark_runner.push.lanes import Lanes
from spark_runner.push.monitor import Monitor
from spark_runner.push.retry import Results, follow_up
from spark_runner.push.settings import Limits, Order, PushSettings
from spark_runner.push.workers import Workers

_Arrivals = dict[Destination, tuple[list[Record], list[int]]]
"""Records with their numbers."""


class Engine:
    """The push of one task: `deliver` sends a batch, in several threads at the same time.

    A `DeliveryError` that it raises is the result of the batch; any other error ends the push. `on_dead` gets
    dead letters, in a thread of a worker, before they count as acknowledged. A context manager: it drains, or
    aborts after an error.
    """

    def __init__(
        self,
        deliver: Callable[[Batch], Results],
        settings: PushSettings,
        limits: Limits,
        *,
        on_dead: Callable[[Sequence[DeadLetter]], None] = lambda _: None,
        position: Any = None,
        clock: Callable[[], float] = time.monotonic,
        name: str = "push",
    ) -> None:
        self._deliver, self._settings, self._on_dead, self._clock = deliver, settings, on_dead, clock
        self._lanes = Lanes(settings, limits, position)
        self._monitor = Monitor(clock())
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # for the producer
        self._workers = Workers(
            self._lanes,
            self._run,
            self.fail,
            name=name,
            lock=self._lock,
            clock=clock,
            settings=settings,
            most=settings.max_threads or limits.concurrency,
        )
        self._failure: BaseException | None = None
        self._has_ended = self._is_full = False
        self._next_number = self._running = 0
        self.available: int | None = None
        """How many records the source has beyond those that were put; None: unknown."""
        self._returned = clock()  # when the producer went for its next records

    def __enter__(self) -> Self:
        """Nothing starts before the first record."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drain, or abort after an error."""
        if error is None:
            self.drain()
        else:
            self.abort()

    # ------------------------------------------------------------------ the producer
    def put(self, records: Sequence[Record], position: Any = None, *, is_delivered: bool = False) -> None:
        """Add records, after which the source has this position; waits while the buffer is full.

        With `is_delivered`, an earlier attempt has delivered them: they only complete batches. Raises
        TargetDown, PushEnded, and any error of a delivery.
        """
        came, pending = self._clock(), self._by_destination(records)
        with self._lock:
            self._check()
            self._monitor.pulled(came - self._returned)
            portion = self._lanes.read(len(records), position, is_delivered=is_delivered)
            while True:
                now = self._clock()
                pending = self._add(pending, portion, now)
                self._workers.wake(now)
                if not pending:
                    break
                self._wait_for_room({to.lane for to in pending})
            self._check()
            self._returned = self._clock()

    def drain(self) -> None:
        """Deliver all records, and end; raises as `put`."""
        try:
            with self._lock:
                self._check()
                self._monitor.pulled(self._clock() - self._returned)
                self._lanes.flush(self._clock())
                self._workers.wake(self._clock())
                while not self._lanes.is_empty:
                    self._changed.wait()
                    self._check()
        finally:
            self._end()

    def abort(self) -> int:
        """End after the requests in flight; returns the number of rows that are not settled then.

        A producer that waits meanwhile gets PushEnded.
        """
        self._end()
        return self._lanes.rows

    def fail(self, error: BaseException) -> None:
        """End the push: its producer raises the error."""
        with self._lock:
            self._failure = self._failure or error
            self._workers.end()
            self._changed.notify_all()

    def _by_destination(self, records: Sequence[Record]) -> _Arrivals:
        found, place_of = dict[Any, tuple[list[Record], list[int]]](), self._lanes.place_of
        for number, record in enumerate(records, self._next_number):
            place = place_of(record)
            mine = found.get(place)
            if mine is None:
                mine = found[place] = [], []
            mine[0].append(record)
            mine[1].append(number)
        self._next_number += len(records)
        return {Destination(*place): mine for place, mine in found.items()}

    def _add(self, arrivals: _Arrivals, portion: Portion, now: float) -> _Arrivals:
        """Add records; returns those for which there is no room yet."""
        left, full = _Arrivals(), set[str]()
        for to, (records, numbers) in arrivals.items():
            end = 0 if to.lane in full else self._fitting(to.lane, records)
            if end:
                self._lanes.add(to, records[:end], numbers[:end], portion, now)
                self._monitor.read(to.lane, total_rows(records[:end]), now)
            if end < len(records):
                left[to] = records[end:], numbers[end:]
                full.add(to.lane)
        return left

    def _fitting(self, lane: str, records: Sequence[Record]) -> int:
        """How many of these records have room; an empty buffer takes any record."""
        most, rows, size = self._lanes.room(lane)
        if len(records) <= most and total_rows(records) <= rows and buffer_size(records) <= size:
            return len(records)
        end = 1 if self._lanes.is_empty else 0
        rows, size = rows - total_rows(records[:end]), size - buffer_size(records[:end])
        for record in records[end:most]:
            rows, size = rows - record.rows, size - buffer_size([record])
            if rows < 0 or size < 0:
                break
            end += 1
        return end

    def _wait_for_room(self, lanes: Collection[str]) -> None:
        """Wait until a request ends; a producer without a free thread runs a batch itself."""
        has_threads = len(self._workers) < self._workers.most or self._workers.active < len(self._workers)
        began, self._is_full = self._clock(), True
        self._lanes.release(began, lanes)
        self._workers.wake(began)
        batch = None if has_threads else self._lanes.start(began)
        if batch is None:
            self._changed.wait()
            self._monitor.stopped(self._clock() - began)
        else:
            self._lock.release()
            try:
                self._run(batch)
            except BaseException as error:
                self.fail(error)
                raise
            finally:
                self._lock.acquire()
        self._is_full = False
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._has_ended:
            raise PushEnded("the push has ended")

    def _end(self) -> None:
        with self._lock:
            self._has_ended = True
            self._workers.end()
            self._changed.notify_all()
        self._workers.join()
        with self._lock:
            while self._running:  # its producer may run a batch
                self._changed.wait()

    # ------------------------------------------------------------------ the threads
    def _run(self, batch: Batch) -> None:
        """Deliver a batch, and settle its records; raises what is no result of it."""
        with self._lock:
            self._running += 1
        try:
            results = self._results(batch)
            is_ordered, is_up = self._settings.order is not Order.NONE, self._lanes.breaker.is_up
            follow = follow_up(batch, results, self._settings.retry, is_ordered=is_ordered, is_up=is_up)
            with self._lock:
                now = self._clock()
                settled = self._lanes.settle(batch, results, follow, now)
                if not batch.is_delivered:
                    self._monitor.ended(batch, results, follow, now, is_late=settled.is_late)
            dead = [letter for each in settled.acknowledged for letter in each.dead]
            if dead:
                self._on_dead(dead)
            with self._lock:
                for each in settled.acknowledged:
                    self._lanes.acknowledge(each)
                    self._monitor.acknowledged(each, now)
            if settled.failure is not None:
                raise settled.failure
        finally:
            with self._lock:
                self._running -= 1
                self._changed.notify_all()

    def _results(self, batch: Batch) -> Results:
        try:
            return None if batch.is_delivered else self._deliver(batch)
        except DeliveryError as error:
            return error

    # ------------------------------------------------------------------ operators
    @property
    def position(self) -> Any:
        """The position of the source up to which all records are delivered or dead letters."""
        return self._lanes.acknowledgements.position

    @property
    def delivered(self) -> Any:
        """The position up to which all are delivered: from it on, a restart meets each dead letter again."""
        return self._lanes.acknowledgements.delivered

    def counts(self) -> dict[str, int]:
        """What has happened to all records since the start."""
        with self._lock:
            return self._monitor.total().document()

    def report(self) -> dict[str, Any]:
        """What the driver gets to know: the state now, and all numbers since the start."""
        with self._lock:
            lanes = self._lanes
            return {
                "in_flight": lanes.in_flight,
                "buffered": lanes.rows,
                "buffered_bytes": lanes.buffered_bytes,
                "oldest": round(lanes.oldest(self._clock()), 3),
                "threads": len(self._workers),
                "core_threads": self._workers.core,
                "active": self._workers.active,
                "is_full": self._is_full,
                "available": self.available,
                "position": self.delivered,
                "read_position": self._lanes.acknowledgements.last_read,
                **self._monitor.document(),
            }

    def adjust(self, limits: Limits) -> None:
        """Change the limits."""
        with self._lock:
            now = self._clock()
            self._lanes.adjust(limits, now)
            self._workers.adjust(self._settings.max_threads or limits.concurrency)
            self._workers.wake(now)
            self._is_full = False  # the producer looks again, which a report may come before
            self._changed.notify_all()

    def extend(self, until: float) -> None:
        """Let requests start until this time of its clock, and not after it; without a call, always."""
        with self._lock:
            self._lanes.until = until
            self._workers.wake(self._clock())

    def roll_back(self, lane: str | None = None) -> None:
        """Deliver the records of a lane, or of all, that are not acknowledged again."""
        with self._lock:
            now = self._clock()
            self._lanes.roll_back(now, lane)
            self._workers.wake(now)

    def recover(self) -> int:
        """Roll back order groups whose acknowledgements do not come in order; returns their number."""
        with self._lock:
            now = self._clock()
            found = self._lanes.recover(now)
            self._monitor.recovered += found
            self._workers.wake(now)
            return found
