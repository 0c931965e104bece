"""One spool that is shipped: batches are read in order, acknowledged in any order, checkpointed in order."""

import contextlib
from collections import deque
from dataclasses import dataclass

from orchestrator.logs.spool.folder import SpoolFolder
from orchestrator.logs.spool.position import read_checkpoint, write_checkpoint
from orchestrator.logs.spool.reader import Batch, SpoolReader
from orchestrator.logs.spool.segments import segments_in
from orchestrator.logs.spool.writer import Spool

_MAX_OPEN = 1000  # batches after one that is not acknowledged: after a crash they are sent again
_FULL_BYTES = 256  # a small record: estimates from the bytes whether a batch is full


@dataclass(slots=True)
class InFlightBatch:
    """A batch that is read and not yet acknowledged."""

    content: Batch
    is_done: bool = False


class SpoolStream:
    """The spool of this process, or an adopted one. Callers hold the lock of the shipper."""

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
        self._is_read = False  # of an adopted spool, which gets no more records

    @property
    def damaged_bytes(self) -> int:
        """Bytes that were skipped as damaged."""
        return self._reader.damaged_bytes

    def take(self, max_records: int, max_bytes: int, *, partial: bool) -> InFlightBatch | None:
        """The next batch, if it is full or `partial` is set; else None. Raises OSError."""
        if len(self._open) >= _MAX_OPEN:
            return None
        wanted = min(max_bytes, max_records * _FULL_BYTES)
        if not partial and self._spool is not None and self._reader.pending_bytes() < wanted:
            return None
        batch = self._reader.read(max_records, max_bytes)
        if batch is None:
            self._is_read = self._spool is None
            return None
        in_flight = InFlightBatch(batch)
        self._open.append(in_flight)
        return in_flight

    def done(self, batch: InFlightBatch) -> None:
        """Acknowledge a batch: every record of it is settled."""
        batch.is_done = True
        batch.content.records.clear()
        while self._open and self._open[0].is_done:
            self._done = self._open.popleft().content.end

    def save(self) -> None:
        """Remove the segments before the checkpoint and write it, if it has moved; raises OSError.

        The segments are removed first: on a full disk that frees the space for the checkpoint.
        """
        position = self._done
        if not self._open and self._reader.position > position:  # only damaged bytes in between
            position = self._reader.position
        if position == self._saved:
            return
        for segment in segments_in(self.folder.path):
            if segment.number >= position.segment:
                break
            with contextlib.suppress(FileNotFoundError):  # compressed or dropped at this moment
                segment.remove()
        write_checkpoint(self.folder.path, position)
        self._saved = self._done = position
        if self._spool is not None:
            self._spool.delivered = position

    def is_empty(self) -> bool:
        """Whether all records up to now are delivered; an adopted spool then stays empty."""
        if self._open:
            return False
        return self._is_read if self._spool is None else self._reader.position >= self._spool.end

    def close(self) -> None:
        """Release an adopted folder; another process ships the rest."""
        if self._spool is None:
            self.folder.release()
