"""Lines of an archive file: finding the end of the last whole one, and lines behind an offset."""

import json
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from loguru import logger

from orchestrator.archive.base import ArchiveError, Document
from orchestrator.logs.files import append, folder_lock, replace_file, sync_folder

_START = b'{"run_key": "'  # of every line that an archive has written
_CHUNK_BYTES = 64 * 1024


def line_head(run_key: str) -> bytes:
    """The beginning of the line of this job, which no other line has."""
    return b'{"run_key": ' + json.dumps(run_key).encode("ascii") + b","


def whole_lines_end(file: int, path: Path) -> int:
    """The end of the last whole line in bytes; a torn line of a crash behind it is cut off.

    Raises ArchiveError for a file that no archive has written, and does not cut it.
    """
    size = os.fstat(file).st_size
    end = _last_newline(file, size) + 1
    first, torn = os.pread(file, len(_START), 0), os.pread(file, len(_START), end)
    if not (_begins_line(torn) or _is_blank(torn)) or (end and not _begins_line(first)):
        raise ArchiveError(
            f"{path} contains lines of another program; move it, or set archive.dir to another folder"
        )
    if end < size:
        # Its job still exists: a job is removed only once its whole line is on the disk.
        logger.warning("{}: the last {:,} bytes are a torn line of a crash; cut off", path, size - end)
        os.ftruncate(file, end)
    return end


def found_behind(path: Path, offset: int, heads: tuple[bytes, ...]) -> set[bytes]:
    """The heads of those lines that are in a file behind `offset`; the lines are on the disk then."""
    found = set[bytes]()
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return found
    with file:
        if offset:
            # If the file is shorter than it was, or another one, all of it is searched.
            before = os.pread(file.fileno(), 1, offset - 1)
            file.seek(offset if before == b"\n" else 0)
        for line in file:
            if line.startswith(heads) and line.endswith(b"\n"):
                found.update(head for head in heads if line.startswith(head))
        if found:  # their writer may have died before its fsync
            os.fsync(file.fileno())
    return found


def _begins_line(data: bytes) -> bool:
    return data == _START[: len(data)]


def _is_blank(data: bytes) -> bool:
    return not data.strip(b"\0")  # a power failure leaves zeros on some file systems


def _last_newline(file: int, size: int) -> int:
    """The offset of the last newline; -1 without one."""
    end = size
    while end > 0:
        start = max(0, end - _CHUNK_BYTES)
        place = os.pread(file, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place
        end = start
    return -1


_FILE = re.compile(r"jobs-\d{4}-\d\d\.jsonl")
_OWNER = re.compile(r"[A-Za-z0-9._-]{1,300}")
# An fsync of a busy disk takes up to some seconds; a process that is stopped must not stop all others.
_WAIT_SECONDS = 10.0


def _now() -> datetime:
    return datetime.now(UTC)


class JsonlArchive:
    """Appends to the file of the month, from any number of threads and processes of this host.

    A line is valid once it ends with a newline and is on the disk. Documents that arrive together are written
    with one fsync. `now` determines the month.
    """

    def __init__(self, directory: Path, *, now: Callable[[], datetime] = _now) -> None:
        self._directory = directory
        self._now = now
        self._waiting: list[_PendingLine] = []
        self._guard = threading.Lock()  # of `_waiting`
        self._writing = threading.Lock()  # its holder writes for all waiting threads
        self._owner = ""

    def owner(self) -> str:
        """The name of this folder, created with it, because host names may change or occur twice."""
        if not self._owner:
            with self._opened():
                self._owner = self._read_owner()
        return self._owner

    def position(self) -> str:
        """The file of this month, and its end in bytes."""
        with self._writing, self._opened(), self._current() as (path, _, end):
            return f"{path.name}:{end}"

    def write(self, document: Document, *, since: str = "") -> None:
        """Append the document unless the archive has it behind `since`; returns once it is on the disk."""
        line = _PendingLine(document, since)
        with self._guard:
            self._waiting.append(line)
        with self._writing:
            if not line.finished:
                with self._guard:
                    batch, self._waiting = self._waiting, []
                self._write(batch)
        if line.error is not None:
            raise ArchiveError(line.error)

    def _write(self, batch: "Sequence[_PendingLine]") -> None:
        error: str | None = "the writer of the archive was interrupted"
        try:
            with self._opened(), self._current() as (path, file, end):
                there = self._there(batch, path.name)
                new = {line.head: line.data for line in batch if line.head not in there}
                append(file, b"".join(new.values()), end)
                if end == 0:
                    sync_folder(self._directory)
            error = None
        except ArchiveError as failure:
            error = str(failure)
        finally:
            for line in batch:
                line.finish(error)

    def _there(self, batch: "Sequence[_PendingLine]", current: str) -> set[bytes]:
        """The heads of those that any process wrote before; they are on the disk then."""
        name, offset = min(line.since for line in batch)
        heads = tuple({line.head for line in batch})
        names = {found.name for found in self._directory.iterdir() if _FILE.fullmatch(found.name)}
        there = set[bytes]()
        # The current file as well, because the clock may have been set back over the end of a month.
        for found in sorted(found for found in names if found >= name or found == current):
            there |= found_behind(self._directory / found, offset if found == name else 0, heads)
        return there

    def _read_owner(self) -> str:
        path = self._directory / "name"
        try:
            owner = path.read_text("ascii", errors="replace").strip()
        except FileNotFoundError:
            host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())
            owner = f"{host}-{secrets.token_hex(4)}"
            replace_file(path, f"{owner}\n".encode("ascii"), mode=None, durable=True)
        if not _OWNER.fullmatch(owner):
            raise ArchiveError(f"{path} does not hold the name of an archive; restore it, or set archive.dir")
        return owner

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """The folder, locked for this process; an OSError becomes an ArchiveError."""
        try:
            with folder_lock(self._directory, seconds=_WAIT_SECONDS) as is_held:
                if not is_held:
                    lock = self._directory / "lock"
                    raise ArchiveError(f"{lock} has been held by another process for {_WAIT_SECONDS:g} s")
                yield
        except OSError as error:
            place = error.filename or self._directory
            reason = error.strerror or error
            raise ArchiveError(f"the archive {place} cannot be used: {reason}") from error

    @contextmanager
    def _current(self) -> Iterator[tuple[Path, int, int]]:
        """The open file of this month, cut at the end of its last whole line, and that offset."""
        path = self._directory / f"jobs-{self._now():%Y-%m}.jsonl"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            yield path, file, whole_lines_end(file, path)
        finally:
            os.close(file)


class _PendingLine:
    """A document that waits to be written, and its outcome."""

    def __init__(self, document: Document, since: str) -> None:
        # The run key comes first, so that the line is found without parsing.
        ordered = {"run_key": document["run_key"], **document}
        self.data = json.dumps(ordered).encode("ascii") + b"\n"
        self.head = line_head(str(document["run_key"]))
        self.since = _parse_position(since)
        self.finished = False
        self.error: str | None = None

    def finish(self, error: str | None) -> None:
        self.finished, self.error = True, error


def _parse_position(text: str) -> tuple[str, int]:
    name, _, offset = text.partition(":")
    if _FILE.fullmatch(name) and offset.isdecimal():
        return name, int(offset)
    return "", 0  # then all files are searched
