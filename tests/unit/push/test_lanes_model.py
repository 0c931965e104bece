"""Acknowledgement and rollback against a plain model, for any sequence of events."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from spark_runner.push.batch import Batch, Destination, Priority, Record
from spark_runner.push.errors import DeliveryError, Overloaded, Permanent, Retryable, TimedOut
from spark_runner.push.lanes import Lanes
from spark_runner.push.retry import FollowUp, Results, RetryPolicy, follow_up
from spark_runner.push.settings import LaneLimits, Limits, Order, PushSettings

LANES, KEYS = ("a", "b"), range(2)
ERRORS: Mapping[str, DeliveryError] = {
    "retryable": Retryable("503"),
    "overloaded": Overloaded("429", retry_after=3.0),
    "timeout": TimedOut("no answer"),
    "permanent": Permanent("400"),
}
CONCURRENCY = 6


class Group:
    """The plain model of an order group: what was sent and is not acknowledged, in order."""

    def __init__(self) -> None:
        self.sent = list[Batch]()
        self.done = set[Batch]()
        self.seen = list[int]()  # records in the order in which the target saw them first

    def acknowledged(self) -> list[int]:
        """Take the batches that are done from the front; returns their records."""
        found = list(takewhile(self.done.__contains__, self.sent))
        self.sent = self.sent[len(found) :]
        return [number for batch in found for number in batch.numbers]


class Pushes(RuleBasedStateMachine):
    """The lanes decide which batch starts; a source, a target and an operator do whatever they may."""

    @initialize(order=st.sampled_from(Order), window=st.integers(1, 3), records=st.integers(1, 3))
    def begin(self, order: Order, window: int, records: int) -> None:
        self.settings = PushSettings(
            order=order,
            window=window,
            batch_records=records,
            batch_bytes=30,
            batch_seconds=0.5,
            key_groups=2,
            time_limit=20.0,
            retry=RetryPolicy(attempts=3),
            retry_timeout=1e9,
        )
        self.is_ordered = order is not Order.NONE
        self.limits = Limits(concurrency=CONCURRENCY)
        self.lanes = Lanes(self.settings, self.limits)
        self.now = 0.0
        self.portions = list[list[int]]()
        self.records = list[Record]()
        self.groups = defaultdict[object, Group](Group)
        self.in_flight = dict[Batch, Group]()
        self.stale = set[Batch]()  # of those, the ones from before a rollback
        self.due = defaultdict[int, float](float)  # when a record may come again
        self.delivered, self.dead, self.acknowledged = set[int](), set[int](), set[int]()

    # ------------------------------------------------------------------ the source
    @rule(
        found=st.lists(
            st.tuples(st.sampled_from(LANES), st.sampled_from(KEYS), st.integers(1, 20)), max_size=20
        )
    )
    def read(self, found: list[tuple[str, int, int]]) -> None:
        """A portion may be empty."""
        portion = self.lanes.read(len(found), position=len(self.portions) + 1)
        numbers = range(len(self.records), len(self.records) + len(found))
        self.portions.append(list(numbers))
        for number, (lane, key, size) in zip(numbers, found, strict=True):
            record = Record(number, size, lane, key, Priority.HIGH if lane == "a" else Priority.MEDIUM)
            self.records.append(record)
            self.lanes.add(Destination(*self.lanes.place_of(record)), [record], [number], portion, self.now)

    @rule()
    def flush(self) -> None:
        self.lanes.flush(self.now)

    # ------------------------------------------------------------------ the target
    @rule(count=st.integers(1, CONCURRENCY))
    def start(self, count: int) -> None:
        for _ in range(count):
            batch = self.lanes.start(self.now)
            if batch is None:
                break
            self.started(batch)

    def started(self, batch: Batch) -> None:
        assert 0 < len(batch) <= self.settings.batch_records
        assert batch.size <= self.settings.batch_bytes or len(batch) == 1
        assert self.acknowledged.isdisjoint(batch.numbers)
        assert batch.numbers == sorted(batch.numbers)
        assert all(self.due[number] <= self.now for number in batch.numbers)
        found = {Destination(*self.lanes.place_of(record)) for record in batch.records}
        assert len(found) == 1 or not self.is_ordered
        group = self.groups[found.pop() if self.is_ordered else batch]
        mine = {each for each, of in self.in_flight.items() if of is group}
        assert len(mine) < self.settings.window
        assert self.stale.isdisjoint(mine), "a request from before a rollback is in flight"
        group.sent.append(batch)
        group.seen += [number for number in batch.numbers if number not in group.seen]
        assert group.seen == sorted(group.seen)
        self.in_flight[batch] = group

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), kind=st.sampled_from(["all", "all", "some", *ERRORS]))
    def end(self, data: st.DataObject, kind: str) -> None:
        """Any request in flight ends, in any way."""
        batch = data.draw(st.sampled_from(list(self.in_flight)))
        results: Results = ERRORS.get(kind)
        if kind == "some":
            indices = st.dictionaries(st.integers(0, len(batch) - 1), st.sampled_from(sorted(ERRORS)))
            results = {index: ERRORS[name] for index, name in data.draw(indices).items()}
        self.ended(batch, results)

    def ended(self, batch: Batch, results: Results) -> None:
        failed = range(len(batch)) if isinstance(results, DeliveryError) else results or ()
        self.delivered |= {number for index, number in enumerate(batch.numbers) if index not in failed}
        follow = follow_up(batch, results, self.settings.retry, is_ordered=self.is_ordered)
        settled = self.lanes.settle(batch, results, follow, self.now)
        for each in settled.acknowledged:
            self.lanes.acknowledge(each)
        assert settled.is_late is (batch in self.stale)
        self.stale.discard(batch)
        group = self.in_flight.pop(batch)
        if not settled.is_late:
            self.dead |= {letter.number for letter in follow.dead}
            self.acknowledged |= set(self.settled(group, batch, follow))

    def settled(self, group: Group, batch: Batch, follow: FollowUp) -> Sequence[int]:
        if not follow.rest:
            group.done.add(batch)
            return group.acknowledged()
        again = {number for rest in follow.rest for number in rest.numbers}
        self.due.update(dict.fromkeys(again, self.now + follow.pause))
        place = group.sent.index(batch)
        self.stale.update(each for each in group.sent[place + 1 :] if each in self.in_flight)
        group.sent = group.sent[:place]
        if not self.is_ordered:  # each batch has a group of its own, whatever its number of requests
            group.seen.clear()
        return [number for number in batch.numbers if number not in again]

    # ------------------------------------------------------------------ the operator
    @rule(lane=st.sampled_from([None, *LANES]))
    def roll_back(self, lane: str | None) -> None:
        self.lanes.roll_back(self.now, lane)
        for group in self.groups.values():
            if group.sent and lane in {None, group.sent[0].lane}:
                self.stale.update(each for each in group.sent if each in self.in_flight)
                group.sent.clear()

    @rule(
        concurrency=st.integers(1, CONCURRENCY),
        is_suspended=st.sampled_from([False, False, True]),
        paused=st.sets(st.sampled_from(LANES)),
        of_lane=st.integers(0, 2),
    )
    def adjust(self, concurrency: int, is_suspended: bool, paused: set[str], of_lane: int) -> None:
        lanes = {name: LaneLimits(concurrency=of_lane, is_paused=name in paused) for name in LANES}
        self.limits = Limits(concurrency=concurrency, is_suspended=is_suspended, lanes=lanes)
        self.lanes.adjust(self.limits, self.now)

    @rule(seconds=st.floats(0.1, 15.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    # ------------------------------------------------------------------ what always holds
    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        if not hasattr(self, "lanes"):
            return
        open_records = [self.records[n] for n in range(len(self.records)) if n not in self.acknowledged]
        assert self.lanes.records == len(open_records)
        assert self.lanes.bytes == sum(record.size for record in open_records)
        assert self.lanes.in_flight == len(self.in_flight)
        whole = list(takewhile(self.acknowledged.issuperset, self.portions))
        acknowledgements = self.lanes.acknowledgements
        assert acknowledgements.position == (len(whole) or None)
        assert acknowledgements.acknowledged == sum(map(len, whole))
        assert acknowledgements.settled == len(self.acknowledged)
        assert self.acknowledged <= self.delivered | self.dead

    @invariant()
    def nothing_may_start_before_the_time_it_names(self) -> None:
        if hasattr(self, "lanes"):
            at = self.lanes.next_time(self.now)
            assert at is None or at >= self.now

    def teardown(self) -> None:
        """Whatever happened, a target that works again gets each record."""
        if not hasattr(self, "lanes"):
            return
        self.lanes.adjust(Limits(concurrency=CONCURRENCY), self.now)
        self.lanes.flush(self.now)
        for batch in list(self.in_flight):
            self.ended(batch, None)
        while not self.lanes.is_empty:
            at = self.lanes.next_time(self.now)
            assert at is not None, "records are left, and nothing will start"
            self.now = at
            next_one = self.lanes.start(self.now)
            if next_one is None:  # the head of a group has changed
                later = self.lanes.next_time(self.now)
                assert later is not None
                assert later > self.now, "nothing starts at the time that it named"
                continue
            self.started(next_one)
            self.ended(next_one, None)
        self.counts_are_those_of_the_model()
        assert len(self.acknowledged) == len(self.records)


TestPushes = Pushes.TestCase
TestPushes.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
