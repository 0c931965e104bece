"""How far the source is delivered: the position up to which a restart reads nothing again."""

from collections import deque
from typing import Any

from spark_runner.push.batch import Batch, Portion


class Acknowledgements:
    """The portions of a source that are read, and those of which each record is settled.

    A record is settled once it is delivered or a dead letter. Portions are acknowledged in the order in which
    they were read, whatever the order of deliveries. An empty portion is acknowledged without a delivery.
    """

    def __init__(self, position: Any = None) -> None:
        self._open = deque[Portion]()
        self.read = self.acknowledged = 0  # records; the difference is in flight
        self.position = position
        self._ahead = 0  # settled records of portions that are not acknowledged

    @property
    def settled(self) -> int:
        """The number of records that are delivered or dead letters, in any order."""
        return self.acknowledged + self._ahead

    def add(self, count: int, position: Any) -> Portion:
        """A portion of so many records, after which the source has this position."""
        portion = Portion(count, count, position)
        self.read += count
        self._open.append(portion)
        self._advance()
        return portion

    def settle(self, batch: Batch) -> None:
        """All records of a batch are settled."""
        for portion, count in batch.parts:
            portion.left -= count
            self._ahead += count
        self._advance()

    def _advance(self) -> None:
        while self._open and not self._open[0].left:
            portion = self._open.popleft()
            self.acknowledged += portion.count
            self._ahead -= portion.count
            self.position = portion.position
