"""The writing end of a spool: one write(2) per record of whoever logs, in his thread."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from orchestrator.logs.errors import SpoolUnusable
from orchestrator.logs.spool.folder import SpoolFolder
from orchestrator.logs.spool.frames import MAX_RECORD_BYTES, create_line, framed
from orchestrator.logs.spool.keeper import FsyncThread
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.position import Position
from orchestrator.logs.spool.room import DiskQuota
from orchestrator.logs.spool.segments import segment_path

_PIECE_BYTES = 256 * 1024  # of many records in one write: a log call waits for no longer than that takes


class Spool:
    """Appends records for as long as the process lives; what was appended survives its death.

    A power failure may take what was appended within the last `fsync_seconds`. Safe to use from several
    threads; a forked child gets a folder of its own with its first record. Raises SpoolUnusable when it is
    made and its folder cannot be.
    """

    def __init__(self, root: Path, limits: SpoolLimits | None = None) -> None:
        self._root = root
        self._limits = limits or SpoolLimits()
        self.spooled = 0  # records
        self.dropped = 0  # records, since the beginning
        self.on_drops: Callable[[], None] = lambda: None  # in the keeper's thread, when there are new ones
        self._told = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self._file = 0  # none, as in a forked child before its first record
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
            also=self._tell_drops,
        )
        self._fsync_thread.start()

    # ------------------------------------------------------------------ writing
    def append(self, index: str, document: bytes, *, level: int = 20, identity: str = "") -> bool:
        """Append a document (a JSON object) for `index`; False when it was dropped. Never raises OSError.

        Without an identity it gets the next of this producer, and says so as its `event.sequence`.
        """
        if b"\n" in document:  # between fields, as JSON has it in strings as two characters
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
            # A longer one would not be taken for a record by who reads.
            written = len(record) <= MAX_RECORD_BYTES and self._write(framed(record), level)
            if written:
                self._sequence += 1
                self.spooled += 1
            else:
                self.dropped += 1
        return written

    def append_many(self, records: Iterable[tuple[bytes, int]]) -> int:
        """Append records, each with its level, in few writes; how many, from the first one on.

        A record is a `create_line` and a line with its document, MAX_RECORD_BYTES at most. What was not
        appended is not counted as dropped: who called has it still.
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
        """In a forked child, a folder of its own; never after `close`, when nobody would ship it."""
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
            os.ftruncate(self._file, self._offset)  # what is torn would end the segment for readers
        except OSError:
            self._offset += written  # they search for the next whole record
            self._end = (self._number, self._offset)
        return False

    def _roll(self, level: int) -> bool:
        if not self._quota.make_room(level):
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
        """Behind the last record; without the lock, under which a log call may wait for who delivers."""
        return Position(*self._end)

    @property
    def delivered(self) -> Position:
        """Before it nothing has to be kept; who delivers sets it."""
        return self._fsync_thread.delivered

    @delivered.setter
    def delivered(self, position: Position) -> None:
        self._fsync_thread.delivered = position

    def sync(self) -> None:
        """Return when all that was appended is on the disk; raises OSError."""
        if self._file:
            self._fsync_thread.sync()

    def close(self, *, remove: bool = False) -> None:
        """Sync and let go of the folder; with `remove` it goes, unless something in it is not delivered."""
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

    def _tell_drops(self) -> None:
        if self.dropped > self._told:
            self._told = self.dropped
            self.on_drops()

    def after_fork(self) -> None:
        """In the child: let go of what belongs to the parent, whose threads are not here."""
        self._lock = threading.Lock()
        if self._file:
            os.close(self._file)
            self._file = 0


def _pieces(records: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int, int]]:
    """Frames for one write, how many they are, and the level of the loudest."""
    frames, size, loudest = list[bytes](), 0, 0
    for record, level in records:
        frames.append(framed(record))
        size += len(record)
        loudest = max(loudest, level)
        if size >= _PIECE_BYTES:
            yield b"".join(frames), len(frames), loudest
            frames, size, loudest = [], 0, 0
    if frames:
        yield b"".join(frames), len(frames), loudest


_spools: "weakref.WeakSet[Spool]" = weakref.WeakSet()


def _after_fork() -> None:
    for spool in list(_spools):
        spool.after_fork()


os.register_at_fork(after_in_child=_after_fork)
