"""The buffer between a producer and clients that poll, with a clock of the test."""

import threading
from collections.abc import Iterable

import pytest

from spark_runner.push.errors import TargetDown
from spark_runner.push.poll.buffer import Page, PollBuffer, ServingFailed
from spark_runner.push.poll.cursor import BadCursor, Cursor, CursorGone
from spark_runner.push.settings import Limits
from tests.waiting import wait_until

WAIT_S = 30


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rows(numbers: Iterable[int]) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def opened(timeout: float = 0.0, clock: Clock | None = None, **limits: float | bool) -> PollBuffer:
    buffer = PollBuffer(timeout, clock=clock or Clock())
    buffer.adjust(Limits(**{"concurrency": 4, **limits}))  # type: ignore[arg-type]  # a test gives what it names
    buffer.extend(1e9)
    return buffer


def fetched(buffer: PollBuffer, after: Cursor | None = None, most: int = 100, size: int = 1000) -> Page:
    page = buffer.page(after, most, size)
    if page.rows:
        buffer.sent(is_received=True)
    return page


def test_who_asks_for_what_follows_acknowledges_what_came_before() -> None:
    buffer = opened()
    buffer.put(rows(range(10)))
    first = fetched(buffer, most=4)
    assert first.rows == tuple(rows(range(4)))
    assert fetched(buffer, most=4).rows == first.rows, "nothing is acknowledged"
    second = fetched(buffer, first.cursor, most=4)
    assert second.rows == tuple(rows(range(4, 8)))
    assert fetched(buffer, first.cursor, most=2).rows == tuple(rows((4, 5))), "an answer may be lost"
    assert buffer.report()["buffered"] == 6


def test_a_cursor_is_one_that_the_client_has_got_from_this_server() -> None:
    buffer = opened()
    buffer.put(rows(range(10)))
    cursor = fetched(buffer, most=4).cursor
    with pytest.raises(BadCursor, match="no page has had this cursor"):
        fetched(buffer, cursor._replace(position=5))
    with pytest.raises(CursorGone, match="another attempt"):
        fetched(buffer, cursor._replace(nonce="0" * 16))
    fetched(buffer, cursor)
    with pytest.raises(CursorGone, match="a later cursor has been used"):
        fetched(buffer, cursor._replace(position=3))
    assert buffer.report()["buffered"] == 6, "none of them has acknowledged a row"


@pytest.mark.parametrize(
    "text", ["", "7", "0123456789abcdef", "0123456789abcdeg-1", "0123456789abcdef-" + "1" * 19]
)
def test_another_text_is_no_cursor(text: str) -> None:
    with pytest.raises(BadCursor, match="send the value of `next` as it is"):
        Cursor.of(text)


def test_a_page_is_bounded_in_rows_and_bytes_and_has_a_row_at_least() -> None:
    buffer = opened()
    buffer.put([b"x" * 10] * 5)
    assert len(fetched(buffer, size=35).rows) == 3
    assert len(fetched(buffer, size=30).rows) == 3
    assert len(fetched(buffer, size=1).rows) == 1


def test_a_full_buffer_stops_the_producer_until_a_client_acknowledges() -> None:
    buffer = opened(buffer_records=5)
    producer = threading.Thread(target=lambda: buffer.put(rows(range(12))))
    producer.start()
    wait_until(lambda: buffer.report()["is_full"], WAIT_S, "it waits")
    cursor = fetched(buffer).cursor
    for acknowledged, left in ((5, 5), (10, 2)):
        assert cursor.position == acknowledged
        fetched(buffer, cursor)
        wait_until(lambda n=left: buffer.report()["buffered"] == n, WAIT_S, "more rows")  # type: ignore[misc]  # of the loop
        cursor = fetched(buffer, cursor).cursor
    producer.join(WAIT_S)
    report = buffer.report()
    assert (report["buffered"], report["lanes"][""]["read"], report["is_full"]) == (2, 12, False)
    assert report["lanes"][""]["delivered"] == 10


def test_bytes_bound_the_buffer_too_and_an_empty_one_takes_any_row() -> None:
    buffer = opened(buffer_bytes=10)
    assert buffer.offer([b"x" * 4] * 5) == 2
    assert buffer.offer([b"x" * 3]) == 0
    assert buffer.report()["buffered_bytes"] == 8
    fetched(buffer, fetched(buffer).cursor)
    assert buffer.offer([b"x" * 50, b"x"]) == 1


def test_the_end_comes_once_all_rows_are_acknowledged_and_can_be_asked_for_again() -> None:
    buffer, done = opened(), list[int]()
    buffer.put(rows(range(3)))
    producer = threading.Thread(target=lambda: done.append(buffer.finish()))
    producer.start()
    page = fetched(buffer)
    assert (len(page.rows), page.is_end) == (3, False)
    assert not buffer.has_ended
    wait_until(lambda: fetched(buffer, page.cursor).is_end, WAIT_S, "the end")
    producer.join(WAIT_S)
    assert done == [3]
    assert fetched(buffer, page.cursor).is_end
    assert fetched(buffer).is_end
    buffer.fail(RuntimeError("too late"))
    assert fetched(buffer).is_end, "the client has all rows"


def test_rows_that_come_no_more_leave_a_client_without_the_end_and_with_an_error() -> None:
    buffer = opened()
    buffer.put(rows(range(3)))
    buffer.fail(RuntimeError("the source has failed"))
    with pytest.raises(ServingFailed):
        fetched(buffer)
    with pytest.raises(RuntimeError, match="the source has failed"):
        buffer.put(rows((4,)))
    with pytest.raises(RuntimeError, match="the source has failed"):
        buffer.finish()


def test_nothing_is_served_while_suspended_or_beyond_the_lease() -> None:
    clock = Clock()
    buffer = opened(clock=clock)
    buffer.put(rows(range(3)))
    buffer.adjust(Limits(is_suspended=True))
    assert fetched(buffer).rows == ()
    buffer.adjust(Limits())
    assert len(fetched(buffer).rows) == 3
    buffer.extend(clock.now)
    assert fetched(buffer).rows == ()
    buffer.extend(clock.now + 1)
    assert len(fetched(buffer).rows) == 3


def test_limits_hold_for_pages_at_the_same_time_and_per_second() -> None:
    clock = Clock()
    buffer = opened(clock=clock, concurrency=2)
    buffer.put(rows(range(3)))
    assert buffer.page(None, 1, 100).rows
    assert buffer.page(None, 1, 100).rows
    assert not buffer.page(None, 1, 100).rows
    buffer.sent(is_received=False)
    assert buffer.page(None, 1, 100).rows
    assert buffer.report()["in_flight"] == 2
    assert buffer.report()["lanes"][""]["errors"] == 1
    buffer = opened(clock=clock, rate=0.5)
    buffer.put(rows(range(3)))
    assert fetched(buffer).pause == 2.0
    clock.now += 2
    assert fetched(buffer).rows
    assert not fetched(buffer).rows


def test_an_attempt_without_a_client_fails_after_its_time() -> None:
    clock = Clock()
    buffer = opened(timeout=10, clock=clock)
    clock.now += 100
    buffer.put(rows(range(3)))  # before, there was nothing to fetch
    clock.now += 9
    fetched(buffer)
    buffer.put(rows((4,)))
    clock.now += 1
    with pytest.raises(TargetDown, match="no client has acknowledged a row for 10 s"):
        buffer.put(rows((5,)))
    with pytest.raises(ServingFailed):
        fetched(buffer)


def test_a_client_that_asks_again_and_again_for_the_same_rows_is_none() -> None:
    clock = Clock()
    buffer = opened(timeout=10, clock=clock, buffer_records=3)
    buffer.put(rows(range(3)))
    for _ in range(10):
        clock.now += 1
        fetched(buffer)
    with pytest.raises(TargetDown):
        buffer.put(rows((5,)))


def test_time_counts_neither_while_suspended_nor_without_rows_and_begins_anew_with_each_acknowledgement() -> (
    None
):
    clock = Clock()
    buffer = opened(timeout=10, clock=clock)
    buffer.put(rows(range(3)))
    clock.now += 9
    cursor = fetched(buffer, fetched(buffer, most=1).cursor).cursor
    clock.now += 9
    buffer.put(rows((3,)))
    buffer.adjust(Limits(is_suspended=True))
    clock.now += 90
    buffer.put(rows((4,)))
    buffer.adjust(Limits())
    clock.now += 9
    buffer.put(rows((5,)))
    fetched(buffer, fetched(buffer, cursor).cursor)
    clock.now += 90
    buffer.put(rows((6,)))


def test_a_wait_for_the_end_has_a_time_too() -> None:
    clock, failures = Clock(), list[Exception]()
    buffer = opened(timeout=10, clock=clock)

    def finish() -> None:
        try:
            buffer.finish()
        except TargetDown as error:
            failures.append(error)

    producer = threading.Thread(target=finish)
    producer.start()
    wait_until(lambda: buffer._is_finished, WAIT_S, "it waits")  # noqa: SLF001 - no row shows it
    clock.now += 10
    buffer.adjust(Limits())
    producer.join(WAIT_S)
    assert len(failures) == 1


def test_pages_are_measured_until_they_are_acknowledged() -> None:
    clock = Clock()
    buffer = opened(clock=clock)
    buffer.put(rows(range(6)))
    first = fetched(buffer, most=4)
    fetched(buffer, most=5)
    clock.now += 2
    assert buffer.report()["oldest"] == 2
    fetched(buffer, first.cursor)
    report = buffer.report()
    assert report["push_seconds"] == 2
    counts = report["lanes"][""]
    assert (counts["requests"], counts["delivered"], counts["retried"]) == (3, 4, 5)
