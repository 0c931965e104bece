"""Decides which batch starts next: fair among lanes, within the limits of the push."""

from collections.abc import Iterator, Sequence

from spark_runner.push.acknowledgements import Acknowledgements
from spark_runner.push.batch import Batch, Destination, Portion, Priority, Record
from spark_runner.push.circuit_breaker import CircuitBreaker
from spark_runner.push.errors import Retryable, TargetDown
from spark_runner.push.lane import Lane
from spark_runner.push.retry import FollowUp, Results
from spark_runner.push.settings import Limits, Order, PushSettings
from spark_runner.push.token_bucket import TokenBucket

_SHARE_OF_FREE = 4  # times the free buffer is what one lane may hold
_MAX_IDLE_LANES = 1000  # whose limits and latencies are kept
_BY_PRIORITY, _LOW_FIRST = tuple(Priority), tuple(reversed(Priority))


class Lanes:
    """The lanes of a push in one task; not safe for threads. All times are those of one monotonic clock.

    Priorities are served in their order, but `low_share` of the requests serve the lowest first. Of the lanes
    of a priority, that with the fewest requests in flight is next, and lanes with as many take turns: a slow
    lane has no more of them than others. A lane holds at most a multiple of the free buffer, so that a slow
    one leaves room for the others (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory
    packet switches").
    """

    def __init__(self, settings: PushSettings, limits: Limits, position: object = None) -> None:
        self._settings = settings
        self.limits = limits
        self.acknowledgements = Acknowledgements(position)
        self.breaker = CircuitBreaker()
        self._bucket = TokenBucket(limits.rate)
        self._lanes = dict[str, Lane]()  # in the order of their turns
        self._low = 0.0  # the share of requests that is due to the lowest priority
        self.in_flight = self.records = self.bytes = 0

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

    @property
    def is_empty(self) -> bool:
        """Whether no record is left."""
        return not self.records and not self.in_flight

    # ------------------------------------------------------------------ records come
    def room(self, name: str) -> tuple[int, int]:
        """How many records, and bytes, a lane takes now; a single record may be larger than its room."""
        lane = self._lanes.get(name)
        if not self.records:
            return self.limits.buffer_records, self.limits.buffer_bytes
        records, size, ahead = (lane.records, lane.bytes, lane.room()) if lane else (0, 0, 1 << 62)
        free = self.limits.buffer_records - self.records, self.limits.buffer_bytes - self.bytes
        most = [
            min(each, _SHARE_OF_FREE * each - held) for each, held in zip(free, (records, size), strict=True)
        ]
        return min(most[0], ahead), most[1]

    def read(self, count: int, position: object) -> Portion:
        """A portion of the source that was read, whose records are added next."""
        return self.acknowledgements.add(count, position)

    def add(
        self,
        to: Destination,
        records: Sequence[Record],
        numbers: Sequence[int],
        portion: Portion,
        now: float,
    ) -> None:
        """Add records for which there is room."""
        lane = self._lanes.get(to.lane)
        if lane is None:
            if len(self._lanes) >= _MAX_IDLE_LANES:
                self._lanes = {name: each for name, each in self._lanes.items() if not each.is_empty}
            lane = Lane(to.lane, self._settings, self.limits, self.acknowledgements)
            self._lanes[to.lane] = lane
        before = lane.bytes
        lane.add(to, records, numbers, portion, now)
        self.records += len(records)
        self.bytes += lane.bytes - before

    def destination(self, record: Record) -> Destination:
        """Where a record belongs."""
        is_by_key = self._settings.order is Order.BY_KEY
        group = hash(record.key) % self._settings.key_groups if is_by_key else None
        return Destination(record.lane, record.priority, group)

    def release(self, now: float) -> None:
        """Let batches start that are not full in lanes where nothing happens: the buffer has no room."""
        for lane in self:
            if not lane.in_flight and not lane.ready:
                lane.close(now)

    def flush(self, now: float) -> None:
        """Let batches start that are not full."""
        for lane in self:
            lane.flush(now)

    # ------------------------------------------------------------------ batches start
    def start(self, now: float) -> Batch | None:
        """A batch whose request starts now; None without one that may."""
        if self._wait(now) != 0:
            return None
        is_low_due = self._low >= 1
        for priority in _LOW_FIRST if is_low_due else _BY_PRIORITY:
            for lane in sorted(self, key=_in_flight):
                batch = lane.start(priority, now)
                if batch is not None:
                    self._lanes[lane.name] = self._lanes.pop(lane.name)  # the others have their turn
                    self._bucket.take(now)
                    self.breaker.started()
                    self.in_flight += 1
                    self._low = 0.0 if priority is Priority.LOW else self._low + self._settings.low_share
                    return batch
        return None

    @property
    def ready(self) -> int:
        """The number of batches that may start, but for the limits."""
        return sum(lane.ready for lane in self)

    def next_time(self, now: float) -> float | None:
        """When `start` may have a batch, if nothing else happens before; None: never."""
        wait = self._wait(now)
        if wait is None:
            return None
        times = [time for lane in self if (time := lane.next_time(now)) is not None]
        return max(now + wait, min(times)) if times else None

    def _wait(self, now: float) -> float | None:
        """The seconds until a request may start; None: not before one ends, or the limits change."""
        if self.limits.is_suspended or self.in_flight >= self.limits.concurrency:
            return None
        wait = self.breaker.wait(now)
        return None if wait is None else max(wait, self._bucket.wait(now))

    # ------------------------------------------------------------------ requests end
    def settle(self, batch: Batch, results: Results, follow: FollowUp, now: float) -> bool:
        """The request of a batch has ended with results, which have this follow-up; see `Lane.settle`.

        Raises TargetDown.
        """
        lane = self._lanes[batch.lane]
        records, size = lane.records, lane.bytes
        self._observe(lane, batch, results, now)
        is_current = lane.settle(batch, follow, now)
        self.in_flight -= 1
        self.records -= records - lane.records
        self.bytes -= size - lane.bytes
        if lane.failing_for(now) > self._settings.retry_timeout:
            where = f"lane '{lane.name}' of the target" if lane.name else "the target"
            raise TargetDown(f"{where} took no record for {self._settings.retry_timeout:g} s: {results}")
        return is_current

    def _observe(self, lane: Lane, batch: Batch, results: Results, now: float) -> None:
        """Learn of the state of the target; an answer about some records shows that it works."""
        error = results if isinstance(results, Retryable) else None
        if error is None:
            self.breaker.succeeded()
        else:
            self.breaker.failed(now, error.retry_after)
        lane.observe(batch.started, error, now)

    def roll_back(self, now: float, lane: str | None = None) -> int:
        """Let the records of a lane, or of all, that are not acknowledged come again; returns the groups."""
        return sum(each.roll_back(now) for each in self if lane in {None, each.name})

    def recover(self, now: float) -> int:
        """Roll back order groups in which a batch waits too long for the acknowledgement of one before it."""
        return sum(each.roll_back(now, self._settings.acknowledgement_wait) for each in self)


def _in_flight(lane: Lane) -> int:
    return lane.in_flight
