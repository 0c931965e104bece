"""Decides which batch starts next: fair among lanes, within the limits of the push."""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from spark_runner.push.acknowledgements import Acknowledgements
from spark_runner.push.batch import RECORD_BYTES, Batch, Destination, Portion, Priority, Record
from spark_runner.push.circuit_breaker import CircuitBreaker
from spark_runner.push.errors import Overloaded, Retryable, TargetDown
from spark_runner.push.lane import Lane
from spark_runner.push.retry import FollowUp, Results, retryable
from spark_runner.push.settings import Limits, Order, PushSettings
from spark_runner.push.token_bucket import TokenBucket
from spark_runner.push.turns import Turns

_SHARE_OF_FREE = 4  # times the free buffer is what one lane may hold
_SLOW = 4.0  # times the usual latency of all lanes is slow
_SMOOTHING = 0.05  # of the usual latency, for each request
_MAX_IDLE_LANES = 1000  # whose latencies are kept
_BY_PRIORITY = tuple(Priority)
_LOW_FIRST = (Priority.LOW, Priority.HIGH, Priority.MEDIUM)


@dataclass(frozen=True, slots=True)
class Settled:
    """What the end of a request leads to: batches to acknowledge, and why the push cannot go on.

    If `is_late`, the result does not count, because a rollback came before.
    """

    acknowledged: Sequence[Batch] = ()
    is_late: bool = False
    failure: TargetDown | None = None


class Room(NamedTuple):
    """What a lane may still take."""

    records: int
    rows: int
    size: int


class Lanes:
    """The lanes of a push in one task; not safe for threads. All times are those of one monotonic clock.

    Priorities are served in their order, but `low_share` of the requests serve the lowest first. Of the lanes
    of a priority, that with the fewest requests in flight is next, and lanes with as many take turns. A lane
    whose requests take much longer than usual has no more of them than its equal share, though others are
    idle now: they need theirs before these end. A lane holds at most a multiple of the free buffer, so that a
    slow one leaves room for the others (Choudhury and Hahne, "Dynamic queue length thresholds for
    shared-memory packet switches").
    """

    def __init__(self, settings: PushSettings, limits: Limits, position: object = None) -> None:
        self._settings = settings
        self.limits = limits
        self.place_of = _place_of(settings)
        """The values of the `Destination` of a record."""
        self.acknowledgements = Acknowledgements(position)
        self.breaker = CircuitBreaker()
        self._bucket = TokenBucket(limits.rate)
        self._lanes = dict[str, Lane]()
        self._turns = Turns()
        self._trim_at = _MAX_IDLE_LANES
        self._held = set[Lane]()  # slow ones that have their share
        self._usual = 0.0  # latency of a request
        self._busy = 0  # lanes with records
        self._low = 0.0  # the share of a request that is due to the lowest priority
        self.in_flight = self.records = self.rows = self.bytes = 0
        self.until = float("inf")
        """The lease of the limits: no request starts that might not end before this time."""

    def __iter__(self) -> Iterator[Lane]:
        """The lanes."""
        return iter(self._lanes.values())

    def adjust(self, limits: Limits, now: float) -> None:
        """Change the limits."""
        self.limits = limits
        if limits.rate != self._bucket.rate:
            self._bucket.adjust(limits.rate, now)
        for lane in self:
            lane.adjust(limits, now)
            self._turns.update(lane, now)

    @property
    def is_empty(self) -> bool:
        """Whether no record is left."""
        return not self.records and not self.in_flight

    @property
    def buffered_bytes(self) -> int:
        """The bytes of all records in the buffer."""
        return self.bytes + RECORD_BYTES * self.records

    def oldest(self, now: float) -> float:
        """The age of the oldest batch that is not acknowledged, in seconds."""
        return max((lane.oldest(now) for lane in self), default=0.0)

    # ------------------------------------------------------------------ records come
    def room(self, name: str) -> Room:
        """What a lane may take now; an empty buffer takes a larger record, too."""
        lane = self._lanes.get(name)
        records, rows, size = (lane.records, lane.rows, lane.buffered_bytes) if lane else (0, 0, 0)
        free = _room(self.limits.buffer_records - self.rows, rows)
        most = free
        if self._settings.order is Order.STRICT:
            most = min(most, (self._settings.window + 1) * self._settings.batch_records - records)
        return Room(most, free, _room(self.limits.buffer_bytes - self.buffered_bytes, size))

    def read(self, count: int, position: object, *, is_delivered: bool = False) -> Portion:
        """A portion of the source that was read, whose records are added next."""
        return self.acknowledgements.add(count, position, is_delivered=is_delivered)

    def add(
        self, to: Destination, records: Sequence[Record], numbers: Sequence[int], portion: Portion, now: float
    ) -> None:
        """Add records for which there is room."""
        lane = self._lanes.get(to.lane)
        if lane is None:
            lane = self._made(to.lane)
        rows, size = lane.rows, lane.bytes
        self._busy += not lane.records
        lane.add(to, records, numbers, portion, now)
        self.records += len(records)
        self.rows += lane.rows - rows
        self.bytes += lane.bytes - size
        self._turns.update(lane, now)

    def release(self, now: float, stopped: Collection[str]) -> None:
        """Let batches start that are not full, the largest first, while requests could be in flight.

        The buffer has no room for records of the lanes `stopped`: their batches are the first.
        """
        if self.limits.is_suspended:
            return
        idle = self.limits.concurrency - self.in_flight - self.ready
        if idle <= 0 or (self._settings.is_repeatable and idle < self.limits.concurrency):
            return  # what is in flight makes room
        found = [
            (lane.name in stopped, len(group.tail or ()), lane, group)
            for lane in self
            for group in lane.open_groups()
        ]
        for _, _, lane, group in heapq.nlargest(idle, found, key=itemgetter(0, 1)):
            lane.close(group, now)
            self._turns.update(lane, now)

    def flush(self, now: float) -> None:
        """Let batches start that are not full."""
        for lane in self:
            lane.flush(now)
            self._turns.update(lane, now)

    def _made(self, name: str) -> Lane:
        if len(self._lanes) >= self._trim_at:
            for lane in [each for each in self if each.is_idle and each.name not in self.limits.lanes]:
                self._turns.remove(lane)
                del self._lanes[lane.name]
            self._trim_at = max(_MAX_IDLE_LANES, 2 * len(self._lanes))
        lane = self._lanes[name] = Lane(name, self._settings, self.limits)
        return lane

    # ------------------------------------------------------------------ batches start
    @property
    def ready(self) -> int:
        """The number of batches that may start, but for the limits of the push."""
        return self._turns.ready

    def start(self, now: float) -> Batch | None:
        """A batch whose request starts now; None without one that may."""
        if self._wait(now) != 0:
            return None
        self._turns.wake(now)
        for priority in _LOW_FIRST if self._low >= 1 else _BY_PRIORITY:
            while lane := self._turns.next(priority):
                if self._has_its_share(lane, now):
                    self._turns.remove(lane)
                    self._held.add(lane)
                    continue
                batch = lane.start(priority, now)
                self._turns.update(lane, now)
                if batch is not None:
                    if not batch.is_delivered:
                        self._bucket.take(now)
                        self.breaker.started(now)
                    self.in_flight += 1
                    self._low = (
                        0.0 if priority is Priority.LOW else min(1.0, self._low + self._settings.low_share)
                    )
                    return batch
        return None

    def _has_its_share(self, lane: Lane, now: float) -> bool:
        """Whether a lane is slow, and may have no more requests in flight."""
        if self._busy == 1 or lane.in_flight * self._busy < self.limits.concurrency:
            return False
        return lane.latency(now) > _SLOW * self._usual

    def next_time(self, now: float) -> float | None:
        """When `start` may have a batch, if nothing else happens before; None: never."""
        wait, at = self._wait(now), self._turns.next_time(now)
        return None if wait is None or at is None else max(now + wait, at)

    def _wait(self, now: float) -> float | None:
        """The seconds until a request may start; None: not before one ends, or the limits change."""
        is_over = now + self._settings.request_timeout >= self.until
        if is_over or self.limits.is_suspended or self.in_flight >= self.limits.concurrency:
            return None
        wait = self.breaker.wait(now)
        return None if wait is None else max(wait, self._bucket.wait(now))

    # ------------------------------------------------------------------ requests end
    def settle(self, batch: Batch, results: Results, follow: FollowUp, now: float) -> Settled:
        """The request of a batch has ended with results, which have this follow-up."""
        lane, error = self._lanes[batch.lane], retryable(batch, results)
        if not batch.is_delivered:
            self._observe(lane, batch, error, follow, now)
        found = lane.settle(batch, follow, now)
        self.in_flight -= 1
        for each in {lane, *self._held}:
            self._turns.update(each, now)
        self._held.clear()
        failure = None if error is None else self._target_down(lane, error)
        return Settled(found or (), found is None, failure)

    def _observe(
        self, lane: Lane, batch: Batch, error: Retryable | None, follow: FollowUp, now: float
    ) -> None:
        """What a request shows of the target."""
        if error is None:
            self.breaker.succeeded()
        else:
            self.breaker.failed(batch.started, now)
        latency = now - batch.started
        known = self._usual or latency
        self._usual = known + _SMOOTHING * (min(latency, _SLOW * known) - known)
        lane.observe(batch, error, max(follow.pause, self.breaker.wait(now) or 0.0), now)
        if batch.rows > sum(each.rows for each in follow.rest):
            lane.failing_seconds = 0.0  # it took some rows of a record, although not all

    def _target_down(self, lane: Lane, error: Retryable) -> TargetDown | None:
        wait, most = error.retry_after if isinstance(error, Overloaded) else 0.0, self._settings.retry_timeout
        if lane.failing_seconds + wait < most:
            return None
        where = f"lane '{lane.name}' of the target" if lane.name else "the target"
        what = f"wants no request for {wait:g} s" if wait else f"took no record for {most:g} s"
        return TargetDown(f"{where} {what}: {error}")

    def acknowledge(self, batch: Batch) -> None:
        """All records of a batch are delivered, or its dead letters are kept."""
        self.acknowledgements.settle(batch)
        lane = self._lanes[batch.lane]
        lane.forget(batch)
        self._busy -= len(batch) > 0 and not lane.records
        self.records -= len(batch)
        self.rows -= batch.rows
        self.bytes -= batch.size

    def roll_back(self, now: float, lane: str | None = None) -> int:
        """Let the records of a lane, or of all, that are not acknowledged come again; returns the groups."""
        found = [each for each in self if lane in {None, each.name}]
        return sum(self._updated(each, each.roll_back(now), now) for each in found)

    def recover(self, now: float) -> int:
        """Roll back order groups in which a batch waits too long for the acknowledgement of one before it."""
        return sum(self._updated(each, each.recover(now), now) for each in self)

    def _updated(self, lane: Lane, groups: int, now: float) -> int:
        if groups:
            self._turns.update(lane, now)
        return groups


def _room(free: int, held: int) -> int:
    """What a lane may add without holding more than its multiple of what is free then; a little, at first."""
    room = (_SHARE_OF_FREE * free - held) // (_SHARE_OF_FREE + 1)
    return max(room, 0 if held else min(free, 1))


def _place_of(settings: PushSettings) -> Callable[[Record], tuple[str, Priority, object]]:
    groups, medium = settings.key_groups, Priority.MEDIUM
    match settings.order:
        case Order.NONE:
            return lambda record: (record.lane, record.priority, None)
        case Order.STRICT:
            return lambda record: (record.lane, medium, None)
        case Order.BY_KEY:
            return lambda record: (record.lane, medium, _hash(record.key) % groups)


def _hash(key: object) -> int:
    try:
        return hash(key)
    except TypeError:  # a list, for example
        return hash(repr(key))
