"""The rows that wait for clients, bounded in number and bytes: a full buffer stops who fills it."""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from spark_runner.push.errors import PushError, TargetDown
from spark_runner.push.poll.cursor import BadCursor, Cursor, CursorGone
from spark_runner.push.poll.measures import PageMeasures
from spark_runner.push.settings import NOT_YET, Limits
from spark_runner.push.token_bucket import TokenBucket

"""The limits of a task that has no orders."""


class ServingFailed(PushError):
    """The attempt that serves the rows has failed."""


class Page(NamedTuple):
    """Some rows, and the cursor after them; none if there is nothing to serve now.

    `is_end`: all rows are acknowledged, and no more will come. `pause` are the seconds until the limit of
    pages per second lets the next one be served; 0 if another limit does not, or there are no rows.
    """

    rows: tuple[bytes, ...]
    cursor: Cursor
    is_end: bool = False
    pause: float = 0.0


class PollBuffer:
    """Rows between a producer, which waits while it is full, and clients, who ask for pages.

    Who asks for what follows a cursor acknowledges all rows before it; these are dropped. So a page always
    begins at the oldest row that is not acknowledged. Any thread may call the methods.
    """

    def __init__(self, client_timeout: float = 0.0, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.nonce = secrets.token_hex(8)
        self._timeout, self._clock = client_timeout, clock
        self._on_news: Callable[[], None] = lambda: None
        self._limits, self._until = NOT_YET, 0.0
        self._bucket = TokenBucket()
        self._rows = deque[bytes]()
        self._arrivals = deque[tuple[int, float]]()  # position after rows that came together, and when
        self._bytes = self._acknowledged = self._served = self._sending = 0
        self._since = 0.0  # when a client could last have acknowledged a row, and did, or could first
        self._is_finished = self._has_ended = self._is_full = False
        self._failure: BaseException | None = None
        self._measures = PageMeasures()
        self._changed = threading.Condition()  # for the producer

    # ------------------------------------------------------------------ the producer
    def put(self, rows: Sequence[bytes]) -> None:
        """Add rows; waits while the buffer is full. Raises TargetDown, and the error of `fail`."""
        start = 0
        with self._changed:
            while start < len(rows):
                start += self._offer(rows, start)
                if start < len(rows):
                    self._wait_for_room()

    def offer(self, rows: Sequence[bytes]) -> int:
        """Add the first rows, as many as there is room for; returns their number. Raises as `put`."""
        with self._changed:
            return self._offer(rows, 0)

    def finish(self) -> int:
        """No more rows come: wait until a client has got the end; returns the number of all rows.

        Raises as `put`.
        """
        with self._changed:
            now = self._clock()
            self._is_finished = True
            self._since = self._since if self._rows else now
            self._on_news()
            while not self._has_ended:
                self._check()
                self._changed.wait(self._patience())
            return self._acknowledged

    def fail(self, error: BaseException) -> None:
        """End with an error, unless a client has got the end: the producer raises it, clients learn of it."""
        with self._changed:
            if not self._has_ended:
                self._failure = self._failure or error
                self._news()

    # ------------------------------------------------------------------ clients
    def listen(self, on_news: Callable[[], None]) -> None:
        """Call this when there may be something new for clients, in any thread; it must return at once."""
        self._on_news = on_news

    def page(self, after: Cursor | None, most: int, size: int) -> Page:
        """The next rows, at most `most` of together `size` bytes, or one; acknowledges those before `after`.

        Without a cursor it acknowledges nothing. A page with rows must be given to `sent` afterwards. Raises
        BadCursor, CursorGone, ServingFailed.
        """
        with self._changed:
            if self._failure is not None:
                raise ServingFailed("the attempt that serves these rows has failed") from self._failure
            now = self._clock()
            if after is not None:
                self._acknowledge(after, now)
            nothing = Page((), Cursor(self.nonce, self._acknowledged))
            if not self._is_open(now) or self._sending >= self._limits.concurrency:
                return nothing
            if not self._rows:
                return nothing._replace(is_end=True) if self._ends() else nothing
            if pause := self._bucket.wait(now):
                return nothing._replace(pause=pause)
            self._bucket.take(now)
            return self._serve(most, size, now)

    @property
    def has_ended(self) -> bool:
        """Whether a client has got the end."""
        return self._has_ended

    @property
    def has_failed(self) -> bool:
        """Whether no rows are served any more because of an error."""
        return self._failure is not None

    def sent(self, *, is_received: bool) -> None:
        """A page with rows is sent, or cannot be."""
        with self._changed:
            self._sending -= 1
            self._measures.counts.errors += not is_received
            self._news()

    # ------------------------------------------------------------------ the driver
    def adjust(self, limits: Limits) -> None:
        """Change the limits."""
        with self._changed:
            now = self._clock()
            was_open = self._is_open(now)
            self._limits = limits
            self._bucket.adjust(limits.rate, now)
            self._since = self._since if was_open else now  # clients could have nothing before
            self._news()

    def extend(self, until: float) -> None:
        """Serve rows until this time of its clock, and not after it."""
        with self._changed:
            now = self._clock()
            was_open, self._until = self._is_open(now), until
            if was_open != self._is_open(now):
                self._since = now  # likewise
                self._news()

    def report(self) -> dict[str, Any]:
        """The state now, and all numbers since the start."""
        with self._changed:
            oldest = self._clock() - self._arrivals[0][1] if self._arrivals else 0.0
            return {
                "in_flight": self._sending,
                "buffered": len(self._rows),
                "buffered_bytes": self._bytes,
                "oldest": round(oldest, 3),
                "is_full": self._is_full,
                **self._measures.document(),
            }

    # ------------------------------------------------------------------ with the lock
    def _offer(self, rows: Sequence[bytes], start: int) -> int:
        self._check()
        end, size = start, self._bytes
        room = start + self._limits.buffer_records - len(self._rows)
        while end < len(rows) and (
            (end < room and size + len(rows[end]) <= self._limits.buffer_bytes)
            or (end == start and not self._rows)  # an empty buffer takes any row
        ):
            size += len(rows[end])
            end += 1
        if end == start:
            return 0
        now = self._clock()
        self._since = self._since if self._rows else now
        self._rows.extend(rows[start:end])
        self._bytes = size
        self._measures.counts.read += end - start
        self._arrivals.append((self._acknowledged + len(self._rows), now))
        self._on_news()
        return end - start

    def _wait_for_room(self) -> None:
        began, self._is_full = self._clock(), True
        self._changed.wait(self._patience())
        self._is_full = False
        self._measures.stopped_seconds += self._clock() - began

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._patience() == 0:
            error = TargetDown(f"no client has acknowledged a row for {self._timeout:g} s")
            self._failure = error
            self._news()
            raise error

    def _patience(self) -> float | None:
        """The seconds for which a client may still acknowledge nothing; None if it may always."""
        now = self._clock()
        could_have = self._rows or self._is_finished
        if not self._timeout or not could_have or self._has_ended or not self._is_open(now):
            return None
        return max(0.0, self._since + self._timeout - now)

    def _acknowledge(self, after: Cursor, now: float) -> None:
        if after.nonce != self.nonce:
            raise CursorGone(
                "the cursor is of another attempt of the job, and this one serves all rows again"
            )
        if after.position > self._served:
            raise BadCursor("no page has had this cursor")
        count = after.position - self._acknowledged
        if count < 0:
            raise CursorGone("a later cursor has been used already, and has acknowledged the rows after this")
        if count == 0:
            return
        for _ in range(count):
            self._bytes -= len(self._rows.popleft())
        self._acknowledged = after.position
        while self._arrivals and self._arrivals[0][0] <= after.position:
            self._arrivals.popleft()
        self._measures.acknowledged(count, after.position, now)
        self._since = now
        self._news()

    def _serve(self, most: int, size: int, now: float) -> Page:
        found = list[bytes]()
        for row in islice(self._rows, most):
            size -= len(row)
            if found and size < 0:
                break
            found.append(row)
        end = self._acknowledged + len(found)
        self._measures.served(self._acknowledged, end, self._served, now)
        self._served = max(self._served, end)
        self._sending += 1
        return Page(tuple(found), Cursor(self.nonce, end))

    def _ends(self) -> bool:
        """Whether all rows are acknowledged, and no more come: a client gets to know it now."""
        if self._is_finished and not self._has_ended:
            self._has_ended = True
            self._changed.notify_all()
        return self._is_finished

    def _is_open(self, now: float) -> bool:
        return not self._limits.is_suspended and now < self._until

    def _news(self) -> None:
        self._changed.notify_all()
        self._on_news()
