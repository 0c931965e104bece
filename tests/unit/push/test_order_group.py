"""Batches in order: acknowledgement, rollback, and what must not start."""

from spark_runner.push.batch import Batch, Portion, Priority, Record
from spark_runner.push.order_group import OrderGroup


def batch(number: int) -> Batch:
    made = Batch("a", Priority.MEDIUM, created=0.0, is_closed=True)
    made.extend([Record(number, 1)], [number], Portion(1, 1, None))
    return made


def numbers(group: OrderGroup) -> list[int]:
    return [number for each in group for number in each.numbers]


def is_blocked(group: OrderGroup) -> bool:
    return group.is_blocked  # a call, for mypy takes the value of a property for constant


def group_with(*waiting: int, window: int = 1) -> OrderGroup:
    group = OrderGroup(window)
    for number in waiting:
        group.add(batch(number))
    return group


def test_one_request_at_a_time_is_in_flight() -> None:
    group = group_with(1, 2)
    first = group.start(0.0)
    assert is_blocked(group)
    assert group.ended(first)
    assert group.completed(first, 0.0) == [first]
    assert not is_blocked(group)
    assert group.start(0.0).numbers == [2]


def test_batches_that_are_delivered_out_of_order_are_acknowledged_in_order() -> None:
    group = group_with(1, 2, 3, window=3)
    first, second, third = (group.start(0.0) for _ in range(3))
    for each in (third, second):
        assert group.ended(each)
        assert group.completed(each, 0.0) == []
    assert group.ended(first)
    assert group.completed(first, 0.0) == [first, second, third]
    assert group.is_empty


def test_after_a_failure_the_later_ones_come_again_and_their_results_do_not_count() -> None:
    group = group_with(1, 2, 3, 4, window=3)
    first, second, third = (group.start(0.0) for _ in range(3))
    assert group.ended(second)
    group.failed(second, [second.part([0])])
    assert numbers(group) == [1, 2, 3, 4]
    assert group.ended(first), "it was sent before the failed one, and counts"
    assert group.completed(first, 0.0) == [first]
    assert not group.ended(third), "it was sent after the failed one"
    assert [group.start(0.0).numbers for _ in range(3)] == [[2], [3], [4]]


def test_nothing_starts_while_a_request_of_before_a_rollback_is_in_flight() -> None:
    group = group_with(1, 2, 3, window=3)
    first = group.start(0.0)
    assert not is_blocked(group)
    group.roll_back()
    assert is_blocked(group), "it could arrive after the records that are delivered again"
    assert not group.ended(first)
    assert not is_blocked(group)
    assert numbers(group) == [1, 2, 3]


def test_what_replaces_a_failed_batch_comes_before_all_others() -> None:
    group = group_with(1, 2, 9)
    first = group.start(0.0)
    group.ended(first)
    group.failed(first, [batch(5), batch(6)])
    assert numbers(group) == [5, 6, 2, 9]


def test_a_batch_is_held_while_one_before_it_is_in_flight() -> None:
    group = group_with(1, 2, window=2)
    first, second = group.start(0.0), group.start(0.0)
    group.ended(second)
    group.completed(second, 10.0)
    assert (group.is_held(39.0, 30.0), group.is_held(41.0, 30.0)) == (False, True)
    group.ended(first)
    assert group.completed(first, 42.0) == [first, second]
    assert not group.is_held(99.0, 30.0)


def test_a_batch_that_was_sent_takes_no_further_records() -> None:
    group = OrderGroup()
    group.add(Batch("a", Priority.MEDIUM, created=0.0))
    tail = group.tail
    assert tail is not None
    started = group.start(0.0)
    assert started is tail
    group.ended(started)
    group.failed(started, [started.part([])])
    assert group.tail is None
