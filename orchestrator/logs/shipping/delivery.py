"""Delivery of a spool: batches in order, sent until every record is settled, acknowledged in any order."""

import contextlib
import json
import os
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.logs.errors import (
    DeadLettersFull,
    RequestMalformed,
    RequestTooLarge,
    TargetBusy,
    TargetRefuses,
    TargetUnreachable,
)
from orchestrator.logs.files import append, sync_folder
from orchestrator.logs.shipping.pace import Pace
from orchestrator.logs.shipping.target import BatchResult, Counts, LogTarget, RefusedRecord
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


_MAX_BYTES = 256 * 1024**2  # a larger file means a fault of the target or the template, not of documents


class DeadLetters:
    """Appends to one file per process. A record is settled when it is on disk there."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._path = folder, folder / f"{name}.jsonl"
        self._guard = threading.Lock()
        self.count = 0

    def write(self, letters: Sequence[RefusedRecord]) -> None:
        """Store them durably; raises OSError, DeadLettersFull."""
        lines = [_line(letter) for letter in letters]
        with self._guard:
            is_new = not self._path.exists()
            if is_new:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                end = os.fstat(file).st_size
                if end > _MAX_BYTES:
                    raise DeadLettersFull(
                        f"{self._path} holds {end:,} bytes of refused log records: examine and remove it"
                    )
                append(file, b"".join(lines), end)
            finally:
                os.close(file)
            if is_new:
                sync_folder(self._folder)
            self.count += len(lines)


def _line(letter: RefusedRecord) -> bytes:
    action, _, document = letter.record.partition(b"\n")
    head = json.dumps({"status": letter.status, "reason": letter.reason}).encode()
    return b'%b,"action":%b,"document":%b}\n' % (head[:-1], _json(action), _json(document.rstrip(b"\n")))


def _json(data: bytes) -> bytes:
    """The text itself if it is JSON, else as a JSON string: that may be why the target refused it."""
    try:
        json.loads(data)
    except ValueError:
        return json.dumps(data.decode("utf-8", "replace")).encode()
    return data


class Sender:
    """Sends batches for several threads at their common pace."""

    def __init__(self, target: LogTarget, pace: Pace, counts: Counts, dead_letters: DeadLetters) -> None:
        self._target, self._pace, self._counts, self._dead = target, pace, counts, dead_letters

    def prepare(self) -> bool:
        """Prepare the target, with retries; False if the pace was stopped first."""
        while self._pace.enter():
            try:
                self._target.prepare()
            except TargetRefuses as error:
                self._pace.paused(str(error))
            except TargetUnreachable as error:
                self._pace.failed(str(error), error.delay)
            except Exception as error:  # noqa: BLE001 - a bug in a target must not end the thread
                self._pace.paused(_fault(error))
            else:
                self._pace.succeeded()
                return True
        return False

    def deliver(self, records: Sequence[bytes]) -> bool:
        """Settle each record; False if the pace was stopped first: some records may not be settled."""
        parts = [list(records)]
        while parts:
            part = parts.pop()
            if not part:
                continue
            if not self._pace.enter():
                return False
            parts.extend(self._send(part))
        return True

    def _send(self, part: list[bytes]) -> list[list[bytes]]:
        """Send once; return the parts that must be sent again."""
        try:
            result = self._target.send(part)
            self._store_dead(result)
        except (RequestTooLarge, RequestMalformed) as error:
            return self._split(part, error)
        except TargetRefuses as error:
            self._pace.paused(str(error))
        except TargetBusy as error:
            self._pace.slowed(str(error), error.delay)
        except TargetUnreachable as error:
            self._pace.failed(str(error), error.delay)
        except DeadLettersFull as error:
            self._pace.paused(str(error))
        except OSError as error:  # no dead letter can be written, so nothing of this part is settled
            self._pace.failed(f"refused log records cannot be stored: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - a bug in a target: nothing of this part is settled
            self._pace.paused(_fault(error))
        else:
            self._counts.add(result)
            if not result.retry:
                self._pace.succeeded()
                return []
            self._pace.slowed("the target accepted only part of a request")
            return [list(result.retry)]
        return [part]

    def _split(self, part: list[bytes], error: RequestTooLarge | RequestMalformed) -> list[list[bytes]]:
        if len(part) > 1:
            self._pace.succeeded()
            half = len(part) // 2
            return [part[half:], part[:half]]
        status = 413 if isinstance(error, RequestTooLarge) else 400
        result = BatchResult(dead=[RefusedRecord(part[0], status, str(error))])
        try:
            self._store_dead(result)
        except (DeadLettersFull, OSError) as failure:
            self._pace.paused(str(failure))
            return [part]
        self._counts.add(result)
        self._pace.succeeded()
        return []

    def _store_dead(self, result: BatchResult) -> None:
        if result.dead:
            self._dead.write(result.dead)


def _fault(error: Exception) -> str:
    return f"internal error: {type(error).__name__}: {error}"
