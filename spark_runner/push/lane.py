"""The batches of one topic, which share its limits."""

import heapq
import itertools
from collections import deque
from collections.abc import Sequence

from spark_runner.push.acknowledgements import Acknowledgements
from spark_runner.push.adaptive_limit import AdaptiveLimit
from spark_runner.push.batch import Batch, Destination, Portion, Priority, Record, State
from spark_runner.push.errors import DeliveryError, Overloaded, TimedOut
from spark_runner.push.order_group import OrderGroup
from spark_runner.push.retry import FollowUp
from spark_runner.push.settings import LaneLimits, Limits, Order, PushSettings
from spark_runner.push.token_bucket import TokenBucket

_READY = float("-inf")


class Lane:
    """The batches of one topic, by order group. All times are those of one monotonic clock."""

    def __init__(
        self, name: str, settings: PushSettings, limits: Limits, acknowledgements: Acknowledgements
    ) -> None:
        self.name = name
        self._settings, self._acknowledgements = settings, acknowledgements
        self._adaptive = AdaptiveLimit(1, is_adaptive=settings.is_adaptive)
        self._groups = dict[object, OrderGroup]()  # those that are not empty
        self._keys = dict[OrderGroup, object]()
        self._taking = dict[Priority, OrderGroup]()  # without an order: those with a batch that is not full
        self._ready = {priority: deque[OrderGroup]() for priority in Priority}
        self._delayed = list[tuple[float, int, OrderGroup]]()  # a heap
        self._listed = dict[OrderGroup, float]()  # since when, or from when on, each may start
        self._in_flight = dict[Batch, OrderGroup]()
        self._count = itertools.count()
        self._is_flushing = False
        self._failing_since: float | None = None
        self._bucket = TokenBucket()
        self.limits = LaneLimits()
        self.records = self.bytes = 0  # read, and not acknowledged in their group
        self.adjust(limits, 0.0)

    def adjust(self, limits: Limits, now: float) -> None:
        """Change the limits, of which some are those of this lane."""
        mine = limits.of(self.name)
        if mine.rate != self.limits.rate:
            self._bucket.adjust(mine.rate, now)
        self._adaptive.adjust(min(mine.concurrency or limits.concurrency, limits.concurrency))
        self.limits = mine

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is left."""
        return not self._groups

    @property
    def concurrency(self) -> int:
        """The most requests in flight that its target serves well, within the limits."""
        return self._adaptive.limit

    @property
    def in_flight(self) -> int:
        """The number of requests."""
        return len(self._in_flight)

    # ------------------------------------------------------------------ records come
    def room(self) -> int:
        """The number of records that its order lets it read ahead."""
        if self._settings.order is not Order.STRICT:
            return 1 << 62
        return (self._settings.window + 1) * self._settings.batch_records - self.records

    def add(
        self,
        to: Destination,
        records: Sequence[Record],
        numbers: Sequence[int],
        portion: Portion,
        now: float,
    ) -> None:
        """Add records of one priority and order group; without an order, each batch is a group."""
        priority, start = to.priority, 0
        while start < len(records):
            group = self._group(to)
            batch = group.tail
            if batch is None:
                batch = Batch(self.name, priority, now)
                group.add(batch)
            end = self._fitting(batch, records, start)
            batch.extend(records[start:end], numbers[start:end], portion)
            self.records += end - start
            self.bytes += sum(record.size for record in records[start:end])
            if self._is_full(batch) or end < len(records):
                self._close(batch, priority)
            self._list(group, now)
            start = end

    def _group(self, to: Destination) -> OrderGroup:
        if self._settings.order is Order.NONE:
            if to.priority not in self._taking:
                self._taking[to.priority] = self._made(next(self._count), 1)
            return self._taking[to.priority]
        return self._groups.get(to) or self._made(to, self._settings.window)

    def _made(self, key: object, window: int) -> OrderGroup:
        group = self._groups[key] = OrderGroup(window)
        self._keys[group] = key
        return group

    def _fitting(self, batch: Batch, records: Sequence[Record], start: int) -> int:
        """The end of the records that still fit into a batch; an empty one takes any record."""
        end = min(len(records), start + self._settings.batch_records - len(batch))
        size = batch.size + sum(record.size for record in records[start:end])
        least = start + (0 if len(batch) else 1)
        while end > least and size > self._settings.batch_bytes:
            end -= 1
            size -= records[end].size
        return end

    def _is_full(self, batch: Batch) -> bool:
        return len(batch) >= self._settings.batch_records or batch.size >= self._settings.batch_bytes

    def _close(self, batch: Batch, priority: Priority) -> None:
        batch.is_closed = True
        self._taking.pop(priority, None)

    def close(self, now: float) -> None:
        """Let each batch start although it is not full."""
        for group in self._groups.values():
            if group.tail is not None:
                group.tail.is_closed = True
                self._list(group, now)
        self._taking.clear()

    def flush(self, now: float) -> None:
        """Let each batch start, and those that follow, although it is not full."""
        self._is_flushing = True
        for group in self._groups.values():
            self._list(group, now)

    # ------------------------------------------------------------------ batches start
    @property
    def ready(self) -> int:
        """The number of order groups whose head may start, but for the limits."""
        return sum(map(len, self._ready.values()))

    def next_time(self, now: float) -> float | None:
        """When it may have a batch to start, if no request ends before; None: not without other events."""
        if self.limits.is_paused or self._is_at_limit():
            return None
        if any(self._ready.values()):
            return now + self._bucket.wait(now)
        while self._delayed and self._listed.get(self._delayed[0][2]) != self._delayed[0][0]:
            heapq.heappop(self._delayed)  # it is listed elsewhere by now
        return self._delayed[0][0] if self._delayed else None

    def start(self, priority: Priority, now: float) -> Batch | None:
        """A batch whose request starts now; None without one that may."""
        self._wake(now)
        if self.limits.is_paused or self._is_at_limit() or self._bucket.wait(now):
            return None
        ready = self._ready[priority]
        while ready:
            group = ready.popleft()
            del self._listed[group]
            at = self._due(group)
            if at is None or at > now or self._priority(group, now) is not priority:
                self._list(group, now)
                continue
            batch = group.start(now)
            self._taking = {of: each for of, each in self._taking.items() if each is not group}
            self._bucket.take(now)
            self._in_flight[batch] = group
            self._list(group, now)
            return batch
        return None

    def _is_at_limit(self) -> bool:
        return len(self._in_flight) >= self.concurrency

    def _wake(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            at, _, group = heapq.heappop(self._delayed)
            if self._listed.get(group) == at:
                del self._listed[group]
                self._list(group, now)

    def _list(self, group: OrderGroup, now: float) -> None:
        """Put a group where it is found when its head may start."""
        at, listed = self._due(group), self._listed.get(group)
        if at is None or listed == _READY:
            return
        if at <= now:
            self._listed[group] = _READY
            self._ready[self._priority(group, now)].append(group)
        elif listed != at:
            self._listed[group] = at
            heapq.heappush(self._delayed, (at, next(self._count), group))

    def _due(self, group: OrderGroup) -> float | None:
        """When its head may start; None without one, or before a request in flight ends."""
        head = group.head
        if head is None or group.is_blocked:
            return None
        is_whole = head.is_closed or self._is_flushing
        return max(group.due, 0.0 if is_whole else head.created + self._settings.batch_seconds)

    def _priority(self, group: OrderGroup, now: float) -> Priority:
        """That of its head, which gets low beyond its time limit; in order, it must not be overtaken."""
        head, limit = group.head, self._settings.time_limit
        assert head is not None  # noqa: S101 - for mypy: it is due
        is_late = head.state is State.TIMEOUT or 0 < limit < now - head.created
        if is_late and self._settings.order is Order.NONE:
            head.priority, head.state = Priority.LOW, State.TIMEOUT
        return head.priority

    # ------------------------------------------------------------------ requests end
    def observe(self, started: float, error: DeliveryError | None, now: float) -> None:
        """A request that started then has ended now, with or without an error of the target."""
        if error is None:
            self._failing_since = None
            self._adaptive.succeeded(started, now)
        elif self._failing_since is None:
            self._failing_since = now
        if isinstance(error, Overloaded | TimedOut):
            self._adaptive.overloaded(started, now)

    def failing_for(self, now: float) -> float:
        """The seconds since the first failure without a success after it; 0 without one."""
        return 0.0 if self._failing_since is None else now - self._failing_since

    def settle(self, batch: Batch, follow: FollowUp, now: float) -> bool:
        """The request of a batch has ended; returns False if it does not count, as a rollback came before."""
        group = self._in_flight.pop(batch)
        is_current = group.ended(batch)
        if is_current:
            if follow.rest:
                group.due = now + follow.pause
                group.failed(batch, follow.rest)
                self._forget(batch.without(follow.rest))
            else:
                for each in group.completed(batch, now):
                    self._forget(each)
        self._list(group, now)
        if group.is_empty:
            del self._groups[self._keys.pop(group)]
        return is_current

    def _forget(self, batch: Batch) -> None:
        self._acknowledgements.settle(batch)
        self.records -= len(batch)
        self.bytes -= batch.size

    def roll_back(self, now: float, held_for: float = 0.0) -> int:
        """Let all records that are not acknowledged be delivered again; returns the number of order groups.

        With `held_for`, only those of groups in which a completed batch has waited longer for one before it.
        """
        found = [group for group in self._groups.values() if group.is_held(now, held_for)]
        for group in found:
            group.roll_back()
            self._list(group, now)
        return len(found)
