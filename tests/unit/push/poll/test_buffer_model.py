"""Pages and acknowledgements against a plain model, for any sequence of events."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spark_runner.push.poll.buffer import PollBuffer
from spark_runner.push.poll.cursor import BadCursor, Cursor, CursorGone
from spark_runner.push.settings import Limits


class Polled(RuleBasedStateMachine):
    """A producer, clients that behave or not, and an operator do whatever they may."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.buffer = PollBuffer(clock=lambda: self.now)
        self.limits = Limits(concurrency=2, buffer_records=4, buffer_bytes=40)
        self.buffer.adjust(self.limits)
        self.buffer.extend(1e9)
        self.rows = list[bytes]()  # all that the buffer took
        self.acknowledged = self.served = self.sending = 0
        self.cursors = list[Cursor]()
        self.got = set[int]()  # rows that a client got

    @rule(sizes=st.lists(st.integers(1, 50), max_size=6))
    def produce(self, sizes: list[int]) -> None:
        rows = [b"%03d" % (len(self.rows) + place) + b"x" * size for place, size in enumerate(sizes)]
        waiting = self.rows[self.acknowledged :]
        taken = self.buffer.offer(rows)
        expected = 0
        for row in rows:
            is_small = sum(map(len, waiting)) + len(row) <= self.limits.buffer_bytes
            if waiting and not (is_small and len(waiting) < self.limits.buffer_records):
                break
            waiting.append(row)
            expected += 1
        # An empty buffer takes one row whatever its size, and no further one beyond its limits.
        assert taken == expected
        self.rows += rows[:taken]

    @rule(most=st.integers(1, 6), size=st.integers(1, 100), data=st.data())
    def ask(self, most: int, size: int, data: st.DataObject) -> None:
        after = data.draw(st.sampled_from([None, *self.cursors]))
        if after is not None and after.position < self.acknowledged:
            try:
                self.buffer.page(after, most, size)
            except CursorGone:
                return
            raise AssertionError("its rows are gone")
        page = self.buffer.page(after, most, size)
        if after is not None:
            assert self.got.issuperset(range(self.acknowledged, after.position)), (
                "a client got what is dropped"
            )
            self.acknowledged = after.position
        assert page.rows == tuple(self.rows[self.acknowledged : page.cursor.position])
        is_open = not self.limits.is_suspended and self.sending < self.limits.concurrency
        assert bool(page.rows) == (is_open and self.acknowledged < len(self.rows))
        assert len(page.rows) <= most
        assert len(page.rows) <= 1 or sum(map(len, page.rows)) <= size
        if page.rows:
            self.sending += 1
            self.got.update(range(self.acknowledged, page.cursor.position))
            self.served = max(self.served, page.cursor.position)
        self.cursors.append(page.cursor)

    @rule(beyond=st.integers(1, 5))
    def guess(self, beyond: int) -> None:
        for cursor, error in (
            (Cursor(self.buffer.nonce, self.served + beyond), BadCursor),
            (Cursor("0" * 16, self.served), CursorGone),
        ):
            try:
                self.buffer.page(cursor, 1, 1)
            except error:
                continue
            raise AssertionError("it is no cursor of a page")

    @precondition(lambda self: self.sending)
    @rule(is_received=st.booleans())
    def send(self, is_received: bool) -> None:
        self.buffer.sent(is_received=is_received)
        self.sending -= 1

    @rule(records=st.integers(1, 6), size=st.integers(1, 60), is_suspended=st.booleans())
    def adjust(self, records: int, size: int, is_suspended: bool) -> None:
        self.limits = Limits(2, buffer_records=records, buffer_bytes=size, is_suspended=is_suspended)
        self.buffer.adjust(self.limits)

    @invariant()
    def counts(self) -> None:
        report = self.buffer.report()
        waiting = self.rows[self.acknowledged :]
        assert (report["buffered"], report["buffered_bytes"]) == (len(waiting), sum(map(len, waiting)))
        lane = report["lanes"][""]
        assert (lane["read"], lane["delivered"]) == (len(self.rows), self.acknowledged)
        assert report["in_flight"] == self.sending


TestPolled = Polled.TestCase
TestPolled.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
