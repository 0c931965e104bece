"""One spool on its way out: batches are taken in order, acknowledged in any, remembered in order."""

import contextlib
from collections import deque
from dataclasses import dataclass

from orchestrator.logs.spool.folder import SpoolFolder
from orchestrator.logs.spool.position import read_checkpoint, write_checkpoint
from orchestrator.logs.spool.reader import Batch, SpoolReader
from orchestrator.logs.spool.segments import segments_in
from orchestrator.logs.spool.writer import Spool

_MAX_OPEN = 1000  # batches behind one that is not through: what a crash would send again
_FULL_BYTES = 256  # of a record that is smaller than most: for the guess whether a batch is full


@dataclass(slots=True)
class InFlightBatch:
    """A batch under way."""

    batch: Batch
    is_done: bool = False


class SpoolStream:
    """The spool of this process, or an adopted one; used under the lock of the shipper."""

    def __init__(self, folder: SpoolFolder, spool: Spool | None = None) -> None:
        self.folder = folder
        self._spool = spool
        self._saved = read_checkpoint(folder.path)
        self._reader = SpoolReader(
            folder.path,
            self._saved,
            end=None if spool is None else lambda: spool.end,
            whole=spool is None,
        )
        self._open = deque[InFlightBatch]()
        self._done = self._saved
        self._is_read = False  # an adopted one gets no more records: once all are read, that is all

    @property
    def damaged_bytes(self) -> int:
        """What could not be read."""
        return self._reader.damaged_bytes

    def take(self, max_records: int, max_bytes: int, *, partial: bool) -> InFlightBatch | None:
        """The next batch; unless `partial`, only a full one. Raises OSError."""
        if len(self._open) >= _MAX_OPEN:
            return None
        wanted = min(max_bytes, max_records * _FULL_BYTES)
        if not partial and self._spool is not None and self._reader.pending_bytes() < wanted:
            return None
        batch = self._reader.read(max_records, max_bytes)
        if batch is None:
            self._is_read = self._spool is None
            return None
        delivery = InFlightBatch(batch)
        self._open.append(delivery)
        return delivery

    def done(self, delivery: InFlightBatch) -> None:
        """Every record of it is settled for good."""
        delivery.is_done = True
        delivery.batch.records.clear()
        while self._open and self._open[0].is_done:
            self._done = self._open.popleft().batch.end

    def save(self) -> None:
        """Write the checkpoint, if it has moved, and remove the segments before it; raises OSError.

        They go first: on a full disk that makes the room for the checkpoint, and none of them is needed.
        """
        position = self._done
        if not self._open and self._reader.position > position:  # nothing but damaged bytes was between
            position = self._reader.position
        if position == self._saved:
            return
        for segment in segments_in(self.folder.path):
            if segment.number >= position.segment:
                break
            with contextlib.suppress(FileNotFoundError):  # compressed this very moment, or dropped
                segment.remove()
        write_checkpoint(self.folder.path, position)
        self._saved = self._done = position
        if self._spool is not None:
            self._spool.delivered = position

    def is_empty(self) -> bool:
        """Whether all that is there by now is delivered; of an adopted one: for good."""
        if self._open:
            return False
        return self._is_read if self._spool is None else self._reader.position >= self._spool.end

    def close(self) -> None:
        """Let go of an adopted folder: what is left in it, another process ships."""
        if self._spool is None:
            self.folder.release()
