"""The batches of one topic, which share its limits."""

import itertools
from collections.abc import Iterator, Sequence

from spark_runner.push.adaptive_limit import AdaptiveLimit
from spark_runner.push.batch import (
    RECORD_BYTES,
    Batch,
    Destination,
    Portion,
    Priority,
    Record,
    total_size,
)
from spark_runner.push.errors import Overloaded, Retryable, TimedOut
from spark_runner.push.order_group import OrderGroup
from spark_runner.push.retry import FollowUp
from spark_runner.push.schedule import Schedule
from spark_runner.push.settings import Limits, Order, PushSettings
from spark_runner.push.token_bucket import TokenBucket


class Lane:
    """The batches of one topic, by order group. All times are those of one monotonic clock."""

    def __init__(self, name: str, settings: PushSettings, limits: Limits) -> None:
        self.name = name
        self._settings = settings
        self._adaptive = AdaptiveLimit(1, is_adaptive=settings.is_adaptive)
        self._groups = dict[object, OrderGroup]()  # those that are not empty
        self._keys = dict[OrderGroup, object]()
        self._taking = dict[Priority, OrderGroup]()  # without an order: those that records went to last
        self._schedule = Schedule(settings)
        self._in_flight = dict[Batch, OrderGroup]()
        self._count = itertools.count()
        self._failed_at: float | None = None  # the last failure without a success after it
        self._pause = 0.0  # that followed it
        self._asked_until = 0.0  # its target wants no request before this time
        self.failing_seconds = 0.0
        """How long its target has taken nothing, but for the time in which nothing was to be sent."""
        self.limits = limits.of(name)
        self._bucket = TokenBucket(self.limits.rate)
        self.records = self.rows = self.bytes = 0  # read, and not acknowledged in their group
        self.adjust(limits, 0.0)

    @property
    def buffered_bytes(self) -> int:
        """The bytes of its records in the buffer."""
        return self.bytes + RECORD_BYTES * self.records

    def adjust(self, limits: Limits, now: float) -> None:
        """Change the limits, of which some are those of this lane."""
        mine = limits.of(self.name)
        if mine.rate != self.limits.rate:
            self._bucket.adjust(mine.rate, now)
        self._adaptive.adjust(min(mine.concurrency or limits.concurrency, limits.concurrency))
        self.limits = mine

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is left."""
        return not self._groups and not self.records

    @property
    def concurrency(self) -> int:
        """The most requests in flight that its target serves well, within the limits."""
        return self._adaptive.limit

    def latency(self, now: float) -> float:
        """The usual seconds of its requests, at least the age of the oldest; infinite before a success."""
        oldest = next(iter(self._in_flight), None)
        usual = self._adaptive.usual or float("inf")
        return max(usual, 0.0 if oldest is None else now - oldest.started)

    @property
    def in_flight(self) -> int:
        """The number of requests."""
        return len(self._in_flight)

    def oldest(self, now: float) -> float:
        """The age of its oldest batch, in seconds; 0 without one."""
        heads = (next(iter(group), None) for group in self._groups.values())
        return max((now - head.created for head in heads if head is not None), default=0.0)

    # ------------------------------------------------------------------ records come
    def add(
        self,
        to: Destination,
        records: Sequence[Record],
        numbers: Sequence[int],
        portion: Portion,
        now: float,
    ) -> None:
        """Add records of one priority and order group; without an order, each batch is a group."""
        start = 0
        while start < len(records):
            group = self._group(to)
            batch = group.tail
            if batch is None:
                batch = Batch(self.name, to.priority, now)
                group.add(batch)
            end, rows, size = self._fitting(batch, records, start), batch.rows, batch.size
            batch.extend(records[start:end], numbers[start:end], portion)
            self.records += end - start
            self.rows += batch.rows - rows
            self.bytes += batch.size - size
            if self._is_full(batch) or end < len(records):
                batch.is_closed = True
            self._schedule.update(group, now)
            start = end

    def _group(self, to: Destination) -> OrderGroup:
        if self._settings.order is Order.NONE:
            group = self._taking.get(to.priority)
            if group is None or group.tail is None:
                group = self._taking[to.priority] = self._made(next(self._count), 1)
            return group
        return self._groups.get(to) or self._made(to, self._settings.window)

    def _made(self, key: object, window: int) -> OrderGroup:
        group = self._groups[key] = OrderGroup(window)
        self._keys[group] = key
        return group

    def _fitting(self, batch: Batch, records: Sequence[Record], start: int) -> int:
        """The end of the records that still fit into a batch; an empty one takes any record."""
        end = min(len(records), start + self._settings.batch_records - len(batch))
        size = batch.size + total_size(records[start:end])
        least = start + (0 if len(batch) else 1)
        while end > least and size > self._settings.batch_bytes:
            end -= 1
            size -= records[end].size
        return end

    def _is_full(self, batch: Batch) -> bool:
        return len(batch) >= self._settings.batch_records or batch.size >= self._settings.batch_bytes

    def open_groups(self) -> Iterator[OrderGroup]:
        """Those whose head could start, were it full."""
        if not self.limits.is_paused and not self._is_at_limit():
            for group in self._groups.values():
                if group.tail is not None and group.tail is group.head and not group.is_blocked:
                    yield group

    def close(self, group: OrderGroup, now: float) -> None:
        """Let the head of an open group start although it is not full."""
        assert group.head is not None  # noqa: S101 - for mypy: it is open
        group.head.is_closed = True
        self._schedule.update(group, now)

    def flush(self, now: float) -> None:
        """Let each batch start, and those that follow, although it is not full."""
        self._schedule.is_flushing = True
        for group in self._groups.values():
            self._schedule.update(group, now)

    # ------------------------------------------------------------------ batches start
    @property
    def ready(self) -> int:
        """The number of order groups whose head may start, but for the limits."""
        return self._schedule.ready

    def priorities(self, now: float) -> list[Priority]:
        """Those of which a batch may start now."""
        found = self._schedule.priorities(now)
        return [] if self.limits.is_paused or self._is_at_limit() or self._wait(now) else found

    def next_time(self, now: float) -> float | None:
        """When it may have a batch to start, if no request ends before; None: not without other events."""
        if self.limits.is_paused or self._is_at_limit():
            return None
        return now + self._wait(now) if self.ready else self._schedule.next_due()

    def start(self, priority: Priority, now: float) -> Batch | None:
        """A batch whose request starts now, of one of its `priorities`; None if the heads have changed."""
        group = self._schedule.take(priority, now)
        if group is None:
            return None
        batch = group.start(now)
        if not batch.is_delivered:
            self._bucket.take(now)
        self._in_flight[batch] = group
        self._schedule.update(group, now)
        return batch

    def _wait(self, now: float) -> float:
        """The seconds before a request that its rate and its target allow."""
        return max(self._bucket.wait(now), self._asked_until - now)

    def _is_at_limit(self) -> bool:
        return len(self._in_flight) >= self.concurrency

    # ------------------------------------------------------------------ requests end
    def observe(self, batch: Batch, error: Retryable | None, pause: float, now: float) -> None:
        """The target took a batch now, or not, and the batch comes again after a pause."""
        if error is None:
            self._failed_at, self.failing_seconds = None, 0.0
            self._adaptive.succeeded(batch.started, now)
            return
        took = now - batch.started
        gap = took if self._failed_at is None else now - self._failed_at
        self.failing_seconds += min(gap, took + self._pause)
        self._failed_at, self._pause = now, pause
        if isinstance(error, Overloaded) and error.retry_after:
            self._asked_until = now + pause
        if isinstance(error, Overloaded | TimedOut):
            self._adaptive.overloaded(batch.started, now)

    def settle(self, batch: Batch, follow: FollowUp, now: float) -> list[Batch] | None:
        """The request of a batch has ended; returns what is to be acknowledged.

        None if the result does not count, because a rollback came before.
        """
        group = self._in_flight.pop(batch)
        found: list[Batch] | None = None
        if group.ended(batch):
            if follow.rest:
                self._schedule.pause(group, now + follow.pause, is_busy=follow.is_busy)
                group.failed(batch, follow.rest)
                found = [batch.without(follow.rest)]
                found[0].dead = follow.dead
            else:
                batch.dead = follow.dead
                found = group.completed(batch, now)
        self._schedule.update(group, now)
        if group.is_empty:
            del self._groups[self._keys.pop(group)]
        if self._failed_at is None:
            self._schedule.end_pauses(self.concurrency - self.in_flight - self.ready, now)
        elif not self.in_flight and not self.ready:
            self._schedule.probe(now)
        return found

    def forget(self, batch: Batch) -> None:
        """All records of a batch are acknowledged."""
        self.records -= len(batch)
        self.rows -= batch.rows
        self.bytes -= batch.size

    def roll_back(self, now: float) -> int:
        """Let all records that are not acknowledged come again; returns the number of order groups."""
        return self._roll_back(list(self._groups.values()), now)

    def recover(self, now: float) -> int:
        """Likewise, of groups in which a completed batch waits for too long for one before it."""
        wait = self._settings.acknowledgement_wait
        return self._roll_back([each for each in self._groups.values() if each.is_held(now, wait)], now)

    def _roll_back(self, groups: Sequence[OrderGroup], now: float) -> int:
        for group in groups:
            group.roll_back()
            self._schedule.update(group, now)
        return len(groups)
