"""Writes a spool: one write(2) per record, in the thread of the log call."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from orchestrator.logs.errors import SpoolUnusable
from orchestrator.logs.spool.disk_quota import DiskQuota
from orchestrator.logs.spool.folder import SpoolFolder
from orchestrator.logs.spool.fsync_thread import FsyncThread
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.position import Position
from orchestrator.logs.spool.segments import MAX_RECORD_BYTES, create_line, framed, segment_path

_PIECE_BYTES = 256 * 1024  # per write of many records: a log call waits no longer for the lock


class Spool:
    """Appends records to the folder of this process. Appended records survive the end of the process.

    A power failure may lose the records of the last `fsync_seconds`. Thread-safe. A forked child creates its
    own folder with its first record. Raises SpoolUnusable if the folder cannot be created.
    """

    def __init__(self, root: Path, limits: SpoolLimits | None = None) -> None:
        self._root = root
        self._limits = limits or SpoolLimits()
        self.spooled = 0  # records
        self.dropped = 0  # records, since the start
        self.on_drops: Callable[[], None] = lambda: None  # called in the fsync thread after new drops
        self._reported = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self._file = 0  # 0: none, as in a forked child before its first record
        self._open()
        _spools.add(self)

    def _open(self) -> None:
        self._folder = SpoolFolder.create(self._root)
        self._producer, self._sequence = self._folder.producer, 0
        self._number, self._offset = 1, 0
        self._end = (1, 0)
        self._quota = DiskQuota(self._folder, self._limits, self._count_drops)
        try:
            self._file = self._create(1)
        except OSError as error:
            self._folder.remove()
            raise SpoolUnusable(f"the log spool {self._root} cannot be written: {error.strerror}") from error
        self._fsync_thread = FsyncThread(
            self._folder.path,
            self._limits.fsync_seconds,
            current=lambda: (self._file, self._number),
            also=self._report_drops,
        )
        self._fsync_thread.start()

    # ------------------------------------------------------------------ writing
    def append(self, index: str, document: bytes, *, level: int = 20, identity: str = "") -> bool:
        """Append a document (a JSON object) for `index`; False if it was dropped. Never raises OSError.

        Without `identity` the document gets the next id of this producer, and its number as `event.sequence`.
        """
        if b"\n" in document:  # between fields: in strings JSON escapes a line feed
            document = document.replace(b"\n", b" ")
        with self._lock:
            if not self._file and not self._opens_again():
                self.dropped += 1
                return False
            if not identity:
                sequence = self._sequence
                identity = f"{self._producer}-{sequence:x}"
                document = b'{"event.sequence":%d,%b' % (sequence, document[1:])
            record = b"%b%b\n" % (create_line(index, identity).encode(), document)
            # Readers would take a longer record for damaged bytes.
            written = len(record) <= MAX_RECORD_BYTES and self._write(framed(record), level)
            if written:
                self._sequence += 1
                self.spooled += 1
            else:
                self.dropped += 1
        return written

    def append_many(self, records: Iterable[tuple[bytes, int]]) -> int:
        """Append records with their levels in few writes; return how many, counted from the first.

        A record is a `create_line` and a line with its document, at most MAX_RECORD_BYTES. Records that were
        not appended do not count as dropped: the caller still has them.
        """
        appended = 0
        for frames, count, level in _pieces(records):
            with self._lock:
                if not (self._file or self._opens_again()) or not self._write(frames, level):
                    break
                self.spooled += count
            appended += count
        return appended

    def _opens_again(self) -> bool:
        """Create a folder in a forked child; not after `close`, when no shipper would deliver it."""
        if self._is_closed:
            return False
        try:
            self._open()
        except SpoolUnusable:
            return False
        return True

    def _write(self, frame: bytes, level: int) -> bool:
        if self._offset >= self._limits.segment_bytes and not self._roll(level):
            return False
        try:
            written = os.write(self._file, frame)
        except OSError:
            written = 0
        if written == len(frame):
            self._offset += written
            self._end = (self._number, self._offset)
            self._fsync_thread.dirty = True
            return True
        try:
            os.ftruncate(self._file, self._offset)  # a torn record would end the segment for readers
        except OSError:
            self._offset += written  # readers search for the next valid record
            self._end = (self._number, self._offset)
        return False

    def _roll(self, level: int) -> bool:
        if not self._quota.ensure_space(level):
            return False
        number = self._number + 1
        try:
            file = self._create(number)
        except OSError:
            return False
        self._fsync_thread.seal(self._file)
        self._file, self._number, self._offset = file, number, 0
        self._end = (number, 0)
        return True

    # ------------------------------------------------------------------ opening and closing
    @property
    def folder(self) -> SpoolFolder:
        """The folder of this process."""
        return self._folder

    @property
    def end(self) -> Position:
        """The position after the last record.

        Does not take the lock, under which a log call may wait for space.
        """
        return Position(*self._end)

    @property
    def delivered(self) -> Position:
        """The delivered position, set by the shipper; records before it need not be kept."""
        return self._fsync_thread.delivered

    @delivered.setter
    def delivered(self, position: Position) -> None:
        self._fsync_thread.delivered = position

    def sync(self) -> None:
        """Sync all appended records; raises OSError."""
        if self._file:
            self._fsync_thread.sync()

    def close(self, *, remove: bool = False) -> None:
        """Sync and release the folder; with `remove`, delete it if all its records are delivered."""
        with self._lock:
            self._is_closed = True
            if not self._file:
                return
            self._fsync_thread.stop()
            os.close(self._file)
            self._file = 0
            if remove and self.delivered >= self.end:
                self._folder.remove()
            else:
                self._folder.release()
        _spools.discard(self)

    def _create(self, number: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return os.open(segment_path(self._folder.path, number), flags, 0o600)

    def _count_drops(self, count: int) -> None:
        self.dropped += count

    def _report_drops(self) -> None:
        if self.dropped > self._reported:
            self._reported = self.dropped
            self.on_drops()

    def after_fork(self) -> None:
        """Reset the spool in a forked child, which has none of the parent's threads."""
        self._lock = threading.Lock()
        if self._file:
            os.close(self._file)
            self._file = 0


def _pieces(records: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int, int]]:
    """Yield the frames for one write, their number, and their highest level."""
    frames, size, highest = list[bytes](), 0, 0
    for record, level in records:
        frames.append(framed(record))
        size += len(record)
        highest = max(highest, level)
        if size >= _PIECE_BYTES:
            yield b"".join(frames), len(frames), highest
            frames, size, highest = [], 0, 0
    if frames:
        yield b"".join(frames), len(frames), highest


_spools: "weakref.WeakSet[Spool]" = weakref.WeakSet()


def _after_fork() -> None:
    for spool in list(_spools):
        spool.after_fork()


os.register_at_fork(after_in_child=_after_fork)
