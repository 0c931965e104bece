"""Records of many rows: they count as rows, and the target may settle only some of these."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from spark_runner.push.batch import Batch, DeadLetter, Record
from spark_runner.push.engine import Engine
from spark_runner.push.errors import Overloaded, Partial, Permanent, TargetDown, TimedOut
from spark_runner.push.retry import Results
from spark_runner.push.settings import Limits, Order
from tests.push_support import QUICK, WAIT_S, settings
from tests.waiting import wait_until

Rows = tuple[int, ...]


def record(rows: Sequence[int]) -> Record:
    return Record(tuple(rows), 10 * len(rows), rows=len(rows))


class Target:
    """Takes rows; a test decides what it answers to its next requests."""

    def __init__(self, *results: Results) -> None:
        self.results = list(results)
        self.requests = list[Rows]()
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, batch: Batch) -> Results:
        (each,) = batch.records
        self.requests.append(each.value)
        assert self.go_on.wait(WAIT_S)
        found = self.results.pop(0) if self.results else None
        if isinstance(found, Exception):
            raise found
        return found


def counts(engine: Engine, *names: str) -> tuple[int, ...]:
    found = engine.counts()
    return tuple(found[name] for name in names)


def pushed(target: Target, *parts: Sequence[int], order: Order = Order.STRICT) -> tuple[Engine, list[Any]]:
    """The engine after all parts, and the rows that the target rejected."""
    dead = list[DeadLetter]()
    limits, given = Limits(concurrency=2), settings(batch_records=1, order=order, retry_timeout=5.0)
    with Engine(target, given, limits, on_dead=dead.extend) as engine:
        engine.put([record(part) for part in parts], "end")
    return engine, [row for letter in dead for row in letter.rejected or letter.record.value]


def test_a_record_counts_as_its_rows() -> None:
    engine, _ = pushed(Target(), range(5), range(5, 8))
    assert counts(engine, "read", "delivered", "requests", "dead") == (8, 8, 2, 0)
    assert engine.position == "end"


def test_rows_that_the_target_rejects_are_dead_and_the_others_are_delivered() -> None:
    target = Target({0: Partial(["third", "fifth"])})
    engine, rejected = pushed(target, range(5), range(5, 8))
    assert rejected == ["third", "fifth"]
    assert counts(engine, "read", "delivered", "dead", "retried") == (8, 6, 2, 0)
    assert target.requests == [(0, 1, 2, 3, 4), (5, 6, 7)]


def test_a_record_that_is_rejected_as_a_whole_counts_each_of_its_rows_as_dead() -> None:
    engine, rejected = pushed(Target(Permanent("no")), range(5))
    assert rejected == [0, 1, 2, 3, 4]
    assert counts(engine, "delivered", "dead") == (0, 5)


@pytest.mark.parametrize("order", Order)
def test_only_what_is_left_of_a_record_comes_again_and_before_those_that_follow(order: Order) -> None:
    full = Partial(["zeroth"], record([2, 4]), Overloaded("full"))
    target = Target({0: full}, {0: Partial(["fourth"])})
    engine, rejected = pushed(target, range(5), order=order)
    assert target.requests == [(0, 1, 2, 3, 4), (2, 4)]
    assert rejected == ["zeroth", "fourth"]
    assert counts(engine, "read", "delivered", "dead", "retried", "errors") == (5, 3, 2, 2, 0)
    assert engine.position == "end"


def test_a_record_that_is_divided_is_no_failure_of_the_target() -> None:
    target = Target({0: Partial(left=record(range(3, 6)))}, {0: Partial(left=record([5]))})
    engine, _ = pushed(target, range(6), range(6, 9))
    assert target.requests == [tuple(range(6)), (3, 4, 5), (5,), (6, 7, 8)]
    assert counts(engine, "delivered", "dead", "errors") == (9, 0, 0)


def test_rows_that_were_not_in_a_request_are_not_sent_again() -> None:
    target = Target({0: Partial(left=record(range(6)))}, {0: Partial(left=record(range(3, 6)), unsent=3)})
    engine, _ = pushed(target, range(6))
    assert target.requests == [tuple(range(6)), tuple(range(6)), (3, 4, 5)]
    assert counts(engine, "delivered", "retried") == (6, 6)


def test_a_request_of_which_the_target_takes_no_row_has_failed_also_if_it_says_so_for_each_row() -> None:
    none = {0: Partial(left=record(range(6)), error=Overloaded("full"))}
    late = {0: Partial(left=record(range(6)), error=TimedOut("late"))}
    engine, _ = pushed(Target(none, late), range(6))
    assert counts(engine, "delivered", "requests", "errors", "timeouts", "retried") == (6, 3, 2, 1, 12)


def test_a_target_that_takes_some_rows_each_time_is_not_down() -> None:
    rest = [Partial(left=record(range(first, 9)), error=Overloaded("full")) for first in range(1, 9)]
    target = Target(*({0: each} for each in rest))
    given = settings(batch_records=1, order=Order.STRICT, retry_timeout=0.02, retry=QUICK)
    ticks = iter(range(10**9))
    with Engine(target, given, Limits(), clock=lambda: next(ticks) * 0.005) as engine:
        engine.put([record(range(9))])
    assert counts(engine, "delivered") == (9,)
    same = [Partial(left=record(range(9)), error=Overloaded("full")) for _ in range(100)]
    with (
        pytest.raises(TargetDown, match="full"),
        Engine(Target(*({0: each} for each in same)), given, Limits()) as engine,
    ):
        engine.put([record(range(9))])


def test_the_buffer_is_bounded_in_rows() -> None:
    target = Target()
    target.go_on.clear()
    parts = [record(range(10 * part, 10 * part + 10)) for part in range(4)]
    engine = Engine(target, settings(batch_records=1), Limits(concurrency=1, buffer_records=30))
    thread = threading.Thread(target=engine.put, args=[parts])
    thread.start()
    wait_until(lambda: engine.report()["is_full"], WAIT_S, "the buffer is full")
    assert 0 < engine.report()["buffered"] <= 30
    assert counts(engine, "read") == (engine.report()["buffered"],)
    target.go_on.set()
    thread.join(WAIT_S)
    engine.drain()
    assert counts(engine, "read", "delivered") == (40, 40)
    assert engine.report()["buffered"] == engine.report()["buffered_bytes"] == 0


def test_an_empty_buffer_takes_a_record_with_more_rows_than_it_may_have() -> None:
    with Engine(Target(), settings(batch_records=1), Limits(buffer_records=3)) as engine:
        engine.put([record(range(10)), record(range(10, 20))])
    assert counts(engine, "delivered") == (20,)


def test_a_rollback_discards_a_partial_result_and_the_whole_record_comes_again() -> None:
    target = Target({0: Partial(["zeroth"], record([4]), Overloaded("full"))})
    target.go_on.clear()
    with Engine(target, settings(batch_records=1, order=Order.STRICT), Limits()) as engine:
        engine.put([record(range(5))])
        wait_until(lambda: target.requests, WAIT_S, "a request is in flight")
        engine.roll_back()
        target.go_on.set()
    assert target.requests == [tuple(range(5))] * 2
    assert counts(engine, "delivered", "dead", "late", "retried") == (5, 0, 1, 5)
