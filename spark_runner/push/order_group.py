"""Batches that are delivered and acknowledged in the order in which they were read.

Without an order, each batch is a group of its own.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain

from spark_runner.push.batch import Batch, State


class OrderGroup:
    """The batches of one order group; at most `window` of them are in flight.

    More than one may be if the target itself orders requests. Batches are acknowledged in order. If one
    fails, the later ones are discarded and come again, as batches of a new version. Results of the old
    version do not count, and nothing starts while a request of it is in flight: it could arrive after a new
    one.
    """

    __slots__ = ("_held_since", "_in_flight", "_sent", "_waiting", "due", "version", "window")

    def __init__(self, window: int = 1) -> None:
        self.window = window
        self.version = 0
        self.due = 0.0
        """Nothing starts before this time."""
        self._waiting = deque[Batch]()
        self._sent = deque[Batch]()  # of this version: in flight, or completed before one that is in flight
        self._in_flight = set[Batch]()  # of any version
        self._held_since: float | None = None  # a completed batch waits for one before it

    @property
    def head(self) -> Batch | None:
        """The batch that starts next."""
        return self._waiting[0] if self._waiting else None

    @property
    def tail(self) -> Batch | None:
        """The batch that takes further records; None without one."""
        return self._waiting[-1] if self._waiting and not self._waiting[-1].is_closed else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is left."""
        return not (self._waiting or self._sent or self._in_flight)

    @property
    def is_blocked(self) -> bool:
        """Whether nothing may start before a request in flight ends."""
        in_flight = len(self._in_flight)
        return in_flight >= self.window or any(batch.version != self.version for batch in self._in_flight)

    def __iter__(self) -> Iterator[Batch]:
        """The batches that are not acknowledged, in order."""
        return chain(self._sent, self._waiting)

    def add(self, batch: Batch) -> None:
        """Add a batch behind all others."""
        batch.version = self.version
        self._waiting.append(batch)

    def start(self, now: float) -> Batch:
        """Start the head: it takes no further records."""
        batch = self._waiting.popleft()
        batch.is_closed, batch.state, batch.started = True, State.STARTED, now
        batch.tries += 1
        self._sent.append(batch)
        self._in_flight.add(batch)
        return batch

    def ended(self, batch: Batch) -> bool:
        """The request of a batch has ended; returns whether its result counts."""
        self._in_flight.remove(batch)
        return batch.version == self.version

    def completed(self, batch: Batch, now: float) -> list[Batch]:
        """Each record of a batch is delivered or dead; returns the batches that are acknowledged by that."""
        batch.state = State.COMPLETED
        acknowledged = list[Batch]()
        while self._sent and self._sent[0].state is State.COMPLETED:
            acknowledged.append(self._sent.popleft())
        if acknowledged or self._held_since is None:
            is_held = any(each.state is State.COMPLETED for each in self._sent)
            self._held_since = now if is_held else None
        return acknowledged

    def is_held(self, now: float, seconds: float) -> bool:
        """Whether a completed batch has waited longer for one before it."""
        return self._held_since is not None and now - self._held_since > seconds

    def failed(self, batch: Batch, rest: Sequence[Batch]) -> None:
        """Let `rest` come instead of a batch, and then again those that were sent after it."""
        place = self._sent.index(batch)
        later = [self._sent.pop() for _ in range(len(self._sent) - place - 1)]
        self._sent.pop()
        self._again([*rest, *map(_repeated, reversed(later))])

    def roll_back(self) -> None:
        """Let all batches that are not acknowledged come again."""
        sent = [_repeated(each) for each in self._sent]
        self._sent.clear()
        self._again(sent)

    def _again(self, batches: Sequence[Batch]) -> None:
        self.version += 1
        self._held_since = None
        self._waiting.extendleft(reversed(batches))
        for each in self:  # those that were sent before the failed one go on, and are acknowledged
            each.version = self.version


def _repeated(batch: Batch) -> Batch:
    """A batch that comes again whatever became of its request."""
    made = batch.part(range(len(batch)))
    made.is_repeated = True
    return made
