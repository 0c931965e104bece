"""How far the source is delivered: the position up to which a restart reads nothing again."""

from typing import Any

from spark_runner.push.batch import Batch, Portion


class Acknowledgements:
    """The portions of a source that are read, and those of which each record is settled.

    A record is settled once it is delivered or a dead letter. Portions are acknowledged in the order in which
    they were read, whatever the order of deliveries. One that is settled joins the one before it, so there
    are never more of them than records that are not settled.
    """

    def __init__(self, position: Any = None) -> None:
        self._first: Portion | None = None
        self._last: Portion | None = None
        self._before = Portion(0, 0, position, position)  # all that is acknowledged
        self.read = self.settled = 0  # records
        self.last_read = position

    @property
    def acknowledged(self) -> int:
        """The records before the position."""
        return self._before.count

    @property
    def position(self) -> Any:
        """The position up to which all are settled."""
        return self._before.position

    @property
    def delivered(self) -> Any:
        """The position up to which all are delivered: from it on, a restart meets each dead letter again."""
        return self._before.delivered

    def add(self, count: int, position: Any, *, is_delivered: bool = False) -> Portion:
        """A portion of so many records, after which the source has this position; it may be empty."""
        portion = Portion(count, count, position, position, is_delivered=is_delivered, previous=self._last)
        if self._last is None:
            self._first = portion
        else:
            self._last.next = portion
        self._last = portion
        self.last_read = position
        self.read += count
        if not count:
            self._close(portion)
        return portion

    def settle(self, batch: Batch) -> None:
        """All records of a batch are settled."""
        for portion, count in batch.parts:
            if batch.dead:
                portion.has_dead, portion.delivered = True, None
            portion.left -= count
            self.settled += count
            if count and not portion.left:
                self._close(portion)

    def _close(self, portion: Portion) -> None:
        """Acknowledge a settled portion, or let it join the one before it."""
        before, after = portion.previous, portion.next
        if before is None:
            self._first = after
            self._before.join(portion)
        else:
            before.next = after
            before.join(portion)
        if after is None:
            self._last = before
        else:
            after.previous = before
