"""A push in one task: threads, back-pressure, retries, ends."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from spark_runner.push.batch import RECORD_BYTES, Batch, DeadLetter, Priority, Record
from spark_runner.push.engine import Engine
from spark_runner.push.errors import Overloaded, Permanent, Refused, Retryable, TargetDown
from spark_runner.push.retry import Results
from spark_runner.push.settings import LaneLimits, Limits, Order, PushSettings
from tests import push_support
from tests.push_support import WAIT_S
from tests.waiting import wait_until


class Target:
    """Takes batches; a test decides when, and what it answers."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()
        self.results = dict[object, list[Results]]()  # for the next batches with this value
        self.batches = list[list[Any]]()
        self.threads = set[str]()
        self.in_flight = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, batch: Batch) -> Results:
        values = [record.value for record in batch.records]
        with self._lock:
            self.batches.append(values)
            self.threads.add(threading.current_thread().name)
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            left = next((found for value in values if (found := self.results.get(value))), None)
            results = left.pop(0) if left else None
        assert self.go_on.wait(WAIT_S)
        with self._lock:
            self.in_flight -= 1
        if isinstance(results, Exception):
            raise results
        return results

    @property
    def values(self) -> list[Any]:
        return [value for batch in self.batches for value in batch]


def records(values: Iterable[object], lane: str = "", key: object = None, size: int = 1) -> list[Record]:
    return [Record(value, size, lane, key) for value in values]


def settings(**given: object) -> PushSettings:
    return push_support.settings(**{"batch_records": 2, **given})


def test_each_record_is_delivered_once_in_full_batches_and_the_rest_at_the_end() -> None:
    target = Target()
    with Engine(target, settings(), Limits(concurrency=4)) as engine:
        for first in range(0, 7, 7):
            engine.put(records(range(first, first + 7)), position="end")
    assert sorted(target.values) == list(range(7))
    assert Counter(map(len, target.batches)) == {2: 3, 1: 1}
    assert engine.position == "end"


def test_a_batch_leaves_when_it_is_old_although_it_is_not_full() -> None:
    target = Target()
    with Engine(target, settings(batch_seconds=0.05), Limits()) as engine:
        engine.put(records([1]))
        wait_until(lambda: target.batches == [[1]], WAIT_S, "the batch leaves")


def test_a_full_buffer_stops_the_producer_and_room_lets_it_go_on() -> None:
    target = Target()
    target.go_on.clear()
    limits = Limits(concurrency=1, buffer_records=10)
    with Engine(target, settings(), limits) as engine:
        producer = threading.Thread(target=engine.put, args=(records(range(50)),))
        producer.start()
        wait_until(lambda: engine.report()["is_full"], WAIT_S, "the producer waits")
        assert 5 <= engine.report()["buffered"] <= 10
        target.go_on.set()
        producer.join(WAIT_S)
        assert not producer.is_alive()
    assert sorted(target.values) == list(range(50))


def test_the_buffer_is_bounded_in_bytes_but_takes_a_record_that_is_larger() -> None:
    target = Target()
    target.go_on.clear()
    with Engine(target, settings(), Limits(concurrency=1, buffer_bytes=100)) as engine:
        engine.put(records([1], size=1000))
        assert engine.report()["buffered_bytes"] == 1000 + RECORD_BYTES
        producer = threading.Thread(target=engine.put, args=(records([2], size=1),))
        producer.start()
        wait_until(lambda: engine.report()["is_full"], WAIT_S, "the producer waits")
        target.go_on.set()
        producer.join(WAIT_S)


def test_small_records_take_no_more_memory_than_the_buffer_has() -> None:
    target = Target()
    target.go_on.clear()
    limits = Limits(concurrency=1, buffer_records=10**6, buffer_bytes=100 * RECORD_BYTES)
    with Engine(target, settings(), limits) as engine:
        producer = threading.Thread(target=engine.put, args=(records(range(1000), size=0),))
        producer.start()
        wait_until(lambda: engine.report()["is_full"], WAIT_S, "the producer waits")
        assert engine.report()["buffered"] <= 100, "the objects of records count"
        target.go_on.set()
        producer.join(WAIT_S)


def test_requests_in_flight_are_as_many_as_allowed_for_all_and_for_a_lane() -> None:
    target = Target()
    target.go_on.clear()
    limits = Limits(concurrency=5, lanes={"a": LaneLimits(concurrency=2)})
    with Engine(target, settings(), limits) as engine:
        engine.put(records(range(20), lane="a"))
        wait_until(lambda: target.in_flight == 2, WAIT_S, "the lane is at its limit")
        engine.put(records(range(20), lane="b"))
        wait_until(lambda: target.in_flight == 5, WAIT_S, "the push is at its limit")
        target.go_on.set()
    assert target.most == 5


@pytest.mark.parametrize("order", [Order.BY_KEY, Order.STRICT])
def test_records_keep_their_order_while_requests_fail(order: Order) -> None:
    target = Target()
    target.results = {value: [Retryable("503"), Refused("closed")] for value in range(0, 300, 37)}
    with Engine(target, settings(order=order, key_groups=8), Limits(concurrency=8)) as engine:
        for first in range(0, 300, 50):
            engine.put([Record(n, 1, key=n % 10) for n in range(first, first + 50)])
    seen = defaultdict[int, list[int]](list)
    for value in target.values:
        assert isinstance(value, int)
        if value not in seen[value % 10]:
            seen[value % 10].append(value)
    assert dict(seen) == {key: list(range(key, 300, 10)) for key in range(10)}


def test_a_poison_record_is_a_dead_letter_with_its_reason_and_the_others_are_delivered() -> None:
    target, dead = Target(), list[DeadLetter]()
    target.results = {3: [Permanent("no")] * 9}
    with Engine(target, settings(batch_records=8), Limits(), on_dead=dead.extend) as engine:
        engine.put(records(range(8)), position="end")
    assert [(letter.record.value, letter.errors) for letter in dead] == [(3, ("no",))]
    assert engine.position == "end"
    assert engine.counts() | {"requests": 0} == {
        "read": 8,
        "delivered": 7,
        "dead": 1,
        "retried": 14,
        "requests": 0,
        "errors": 4,
        "timeouts": 0,
        "late": 0,
    }


def test_a_slow_lane_does_not_starve_the_others() -> None:
    target = Target()
    slow = threading.Event()

    def deliver(batch: Batch) -> Results:
        if batch.lane == "slow":
            assert slow.wait(WAIT_S)
        return target(batch)

    limits = Limits(concurrency=4, buffer_records=100, lanes={"slow": LaneLimits(concurrency=1)})
    with Engine(deliver, settings(), limits) as engine:
        engine.put(records(range(10), lane="slow"))
        for n in range(1000):
            engine.put(records([n], lane=f"fast-{n % 3}"))
        wait_until(lambda: len(target.batches) >= 490, WAIT_S, "the fast lanes are delivered")
        slow.set()


def test_a_priority_is_served_first_and_the_lowest_has_its_share() -> None:
    target = Target()
    target.go_on.clear()
    with Engine(target, settings(batch_records=1, low_share=0.25), Limits(concurrency=1)) as engine:
        engine.put([Record("first", 1)])
        wait_until(lambda: target.in_flight == 1, WAIT_S, "it is in flight")
        engine.put(
            [Record(priority, 1, priority=priority) for _ in range(8) for priority in reversed(Priority)]
        )
        target.go_on.set()
    served = target.values[1:]
    assert [Priority.LOW in served[start : start + 5] for start in range(0, 20, 5)] == [True] * 4
    ends = {priority: max(n for n, value in enumerate(served) if value is priority) for priority in Priority}
    assert ends[Priority.HIGH] < ends[Priority.MEDIUM]


def test_a_paused_lane_waits_while_others_go_on_and_a_suspended_push_waits_as_a_whole() -> None:
    target = Target()
    with Engine(target, settings(), Limits(lanes={"a": LaneLimits(is_paused=True)})) as engine:
        engine.put(records(range(4), lane="a"))
        engine.put(records(range(4, 8), lane="b"))
        wait_until(lambda: sorted(target.values) == [4, 5, 6, 7], WAIT_S, "the other lane is delivered")
        engine.adjust(Limits(is_suspended=True))
        engine.put(records(range(8, 12), lane="b"))
        assert len(target.values) == 4
        engine.adjust(Limits())
        wait_until(lambda: len(target.values) == 12, WAIT_S, "all lanes are delivered")


def test_no_request_starts_after_the_lease_of_the_limits() -> None:
    target = Target()
    with Engine(target, settings(), Limits()) as engine:
        engine.extend(time.monotonic() - 1)
        engine.put(records(range(4)))
        assert engine.report()["in_flight"] == 0
        assert not target.batches
        engine.extend(time.monotonic() + WAIT_S)
        wait_until(lambda: len(target.batches) == 2, WAIT_S, "they are delivered")


def test_a_rollback_delivers_again_what_is_not_acknowledged_after_the_requests_in_flight() -> None:
    target = Target()
    target.go_on.clear()
    with Engine(target, settings(order=Order.STRICT), Limits()) as engine:
        engine.put(records(range(4)))
        wait_until(lambda: target.in_flight == 1, WAIT_S, "a request is in flight")
        engine.roll_back()
        assert target.batches == [[0, 1]]
        target.go_on.set()
    assert target.batches == [[0, 1], [0, 1], [2, 3]]
    assert engine.counts()["late"] == 1


def test_an_error_that_is_no_delivery_error_ends_the_push_and_its_producer() -> None:
    def deliver(batch: Batch) -> Results:  # noqa: ARG001 - of every delivery
        raise ZeroDivisionError

    engine = Engine(deliver, settings(), Limits(buffer_records=4))
    with pytest.raises(ZeroDivisionError), engine:
        engine.put(records(range(1000)))
    assert not threads_of("push")


def test_a_target_that_takes_nothing_ends_the_push() -> None:
    def deliver(batch: Batch) -> Results:  # noqa: ARG001 - of every delivery
        raise Refused("connection refused")

    engine = Engine(deliver, settings(retry_timeout=0.3), Limits())
    with pytest.raises(TargetDown, match=r"the target took no record for 0\.3 s: connection refused"), engine:
        engine.put(records(range(4)))


def test_a_lane_that_takes_nothing_ends_the_push_although_others_do() -> None:
    target = Target()

    def deliver(batch: Batch) -> Results:
        if batch.lane == "closed":
            raise Overloaded("429")
        return target(batch)

    engine = Engine(deliver, settings(retry_timeout=0.3), Limits(buffer_records=100))
    with pytest.raises(TargetDown, match="lane 'closed' of the target took no record"), engine:
        engine.put([Record(n, 1, "closed" if n % 10 == 0 else "open") for n in range(1000)])


def test_an_abort_ends_after_the_requests_in_flight_and_reports_what_is_left() -> None:
    target = Target()
    target.go_on.clear()
    engine = Engine(target, settings(), Limits(concurrency=1))
    engine.put(records(range(10)))
    wait_until(lambda: target.in_flight == 1, WAIT_S, "a request is in flight")
    threading.Timer(0.05, target.go_on.set).start()
    assert engine.abort() == 8
    assert target.batches == [[0, 1]]
    assert not threads_of("push")


def test_threads_are_named_grow_with_the_work_and_end_without_it() -> None:
    target = Target()
    target.go_on.clear()
    given = settings(core_threads=1, keep_alive=0.05)
    with Engine(target, given, Limits(concurrency=4), name="to-shop") as engine:
        assert not threads_of("to-shop")
        engine.put(records(range(20)))
        wait_until(lambda: target.in_flight == 4, WAIT_S, "four threads run")
        assert threads_of("to-shop") == {f"to-shop-{n}" for n in range(1, 5)}
        target.go_on.set()
        wait_until(lambda: len(threads_of("to-shop")) == 1, WAIT_S, "threads beyond the core end")
    assert not threads_of("to-shop")


def test_core_threads_end_too_where_they_may_and_come_back_with_work() -> None:
    target = Target()
    given = settings(core_threads=2, keep_alive=0.02, core_threads_end=True)
    with Engine(target, given, Limits()) as engine:
        for round_ in range(3):
            engine.put(records([round_, round_]))
            wait_until(lambda: len(target.batches) == round_ + 1, WAIT_S, "it is delivered")  # noqa: B023 - waited for here
            wait_until(lambda: not threads_of("push"), WAIT_S, "all threads end")


def test_a_backlog_waits_for_the_core_threads() -> None:
    target = Target()
    target.go_on.clear()
    given = settings(core_threads=1, backlog=3)
    with Engine(target, given, Limits(concurrency=4)) as engine:
        engine.put(records(range(8)))  # one batch in flight, three wait
        wait_until(lambda: target.in_flight == 1, WAIT_S, "a request is in flight")
        assert len(threads_of("push")) == 1
        engine.put(records(range(2)))
        wait_until(lambda: target.in_flight == 2, WAIT_S, "a second thread has started")
        target.go_on.set()


def test_a_producer_without_a_free_thread_runs_a_batch_itself() -> None:
    target = Target()
    with Engine(target, settings(max_threads=1), Limits(concurrency=2, buffer_records=10)) as engine:
        target.go_on.clear()
        producer = threading.Thread(target=engine.put, args=(records(range(40)),), name="producer")
        producer.start()
        wait_until(lambda: target.in_flight == 2, WAIT_S, "the producer runs a batch, too")
        target.go_on.set()
        producer.join(WAIT_S)
    assert "producer" in target.threads
    assert sorted(target.values) == list(range(40))


def test_a_lane_with_a_rate_gets_about_so_many_requests() -> None:
    target = Target()
    began = time.monotonic()
    with Engine(target, settings(), Limits(lanes={"a": LaneLimits(rate=100.0)})) as engine:
        engine.put(records(range(80), lane="a"))
    assert time.monotonic() - began >= (40 - 10 - 1) / 100.0, "ten tokens are there at the start"


def threads_of(name: str) -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(f"{name}-")}


def test_a_full_buffer_of_batches_that_are_not_full_uses_all_requests() -> None:
    go_on, in_flight = threading.Event(), list[Batch]()

    def deliver(batch: Batch) -> None:
        in_flight.append(batch)
        assert go_on.wait(WAIT_S)

    limits = Limits(concurrency=8, buffer_records=40)
    engine = Engine(deliver, settings(batch_records=10, is_repeatable=True), limits)
    records = [Record(n, 1, str(n % 40)) for n in range(80)]
    producer = threading.Thread(target=engine.put, args=(records,), daemon=True)
    producer.start()
    wait_until(lambda: len(in_flight) == 8, WAIT_S, "as many as allowed are in flight")
    go_on.set()
    producer.join(WAIT_S)
    engine.drain()
    assert engine.counts()["delivered"] == 80


def test_an_acknowledgement_that_does_not_come_in_order_is_recovered_and_reported() -> None:
    first, is_first = threading.Event(), True
    delivered = list[int]()

    def deliver(batch: Batch) -> None:
        nonlocal is_first
        value = batch.records[0].value
        if value == 0 and is_first:
            is_first = False
            assert first.wait(WAIT_S)
        delivered.append(value)

    made = settings(batch_records=1, order=Order.STRICT, window=2, acknowledgement_wait=0.05)
    with Engine(deliver, made, Limits(concurrency=2)) as engine:
        engine.put(records(range(2)))
        wait_until(lambda: delivered == [1], WAIT_S, "the second one overtakes the first one")
        assert engine.position is None
        wait_until(lambda: engine.recover() == 1, WAIT_S, "the order group is rolled back")
        assert engine.report()["recovered"] == 1
        first.set()
    assert delivered == [1, 0, 0, 1], "what came before the rollback does not count"
    counts = engine.counts()
    assert (counts["delivered"], counts["late"]) == (2, 1)


def test_the_time_in_which_records_come_and_that_of_a_full_buffer_are_told_apart() -> None:
    target, now = Target(), 0.0
    with Engine(target, settings(), Limits(), clock=lambda: now) as engine:
        engine.put(records(range(2)))
        now = 3.0
        engine.put(records(range(2)))
        now = 4.0
    report = engine.report()
    assert (report["read_seconds"], report["stopped_seconds"]) == (4.0, 0.0)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("delivered", range(8))
def test_what_an_earlier_attempt_has_delivered_completes_batches_and_is_not_sent(
    order: Order, delivered: int
) -> None:
    """A batch of which it has delivered only some records is the same as in that attempt."""
    target, found = Target(), [record for n in range(7) for record in records([n], key=n % 2)]
    # A rate of which each request that it does not need would cost half a minute.
    limits = Limits(concurrency=1, rate=1 / 30 if delivered == len(found) else 0.0)
    with Engine(target, settings(order=order), Limits(concurrency=1)) as first:
        first.put(found)
    whole, target.batches = target.batches, []
    with Engine(target, settings(order=order), limits) as second:
        second.put(found[:delivered], "given", is_delivered=True)
        second.put(found[delivered:], "end")
    assert (second.counts()["delivered"], second.delivered) == (7, "end")
    assert second.counts()["requests"] == len(target.batches)
    assert sorted(target.batches) == sorted(batch for batch in whole if max(batch) >= delivered)
