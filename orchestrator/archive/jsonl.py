"""The archive in files of this host: `jobs-<year>-<month>.jsonl`, one line per job."""

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

from orchestrator.archive.base import Document
from orchestrator.archive.errors import ArchiveError
from orchestrator.archive.lines import found_behind, line_head, whole_lines_end
from orchestrator.logs.files import append, folder_lock, replace_file, sync_folder

_FILE = re.compile(r"jobs-\d{4}-\d\d\.jsonl")
_OWNER = re.compile(r"[A-Za-z0-9._-]{1,300}")
# An fsync of a busy disk takes up to some seconds; a process that is stopped must not stop all others.
_WAIT_SECONDS = 10.0


def _now() -> datetime:
    return datetime.now(UTC)


class JsonlArchive:
    """Appends to the file of the month, from any number of threads and processes of this host.

    A line counts when it ends with a newline and is on the disk. Documents that come together are written
    with one fsync. `now` gives the month.
    """

    def __init__(self, directory: Path, *, now: Callable[[], datetime] = _now) -> None:
        self._directory = directory
        self._now = now
        self._waiting: list[_Entry] = []
        self._guard = threading.Lock()  # of `_waiting`
        self._writing = threading.Lock()  # whoever has it writes for all that wait
        self._owner = ""

    def owner(self) -> str:
        """The name of this folder, made with it: host names come twice, and change."""
        if not self._owner:
            with self._opened():
                self._owner = self._read_owner()
        return self._owner

    def position(self) -> str:
        """The file of this month, and its end in bytes."""
        with self._writing, self._opened(), self._current() as (path, _, end):
            return f"{path.name}:{end}"

    def write(self, document: Document, *, since: str = "") -> None:
        """Append the document unless it stands behind `since`; returns when it is on the disk."""
        entry = _Entry(document, since)
        with self._guard:
            self._waiting.append(entry)
        with self._writing:
            if not entry.settled:
                with self._guard:
                    batch, self._waiting = self._waiting, []
                self._write(batch)
        if entry.error is not None:
            raise ArchiveError(entry.error)

    def _write(self, batch: "Sequence[_Entry]") -> None:
        error: str | None = "the writer of the archive was interrupted"
        try:
            with self._opened(), self._current() as (path, file, end):
                there = self._there(batch, path.name)
                new = {entry.head: entry.line for entry in batch if entry.head not in there}
                append(file, b"".join(new.values()), end)
                if end == 0:
                    sync_folder(self._directory)
            error = None
        except ArchiveError as failure:
            error = str(failure)
        finally:
            for entry in batch:
                entry.settle(error)

    def _there(self, batch: "Sequence[_Entry]", current: str) -> set[bytes]:
        """Which of them were written before, by whom ever; on the disk by then."""
        name, offset = min(entry.since for entry in batch)
        heads = tuple({entry.head for entry in batch})
        names = {found.name for found in self._directory.iterdir() if _FILE.fullmatch(found.name)}
        there = set[bytes]()
        # The present file also where the clock was set back over the end of a month.
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
        """The folder for this process alone; what the system says becomes an ArchiveError."""
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
        """The file of this month, opened, and the end of its last whole line, where it is cut."""
        path = self._directory / f"jobs-{self._now():%Y-%m}.jsonl"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            yield path, file, whole_lines_end(file, path)
        finally:
            os.close(file)


class _Entry:
    """A document that waits to be written, and what became of it."""

    def __init__(self, document: Document, since: str) -> None:
        # First in its line, so that it is found without parsing.
        ordered = {"run_key": document["run_key"], **document}
        self.line = json.dumps(ordered).encode("ascii") + b"\n"
        self.head = line_head(str(document["run_key"]))
        self.since = _parse_position(since)
        self.settled = False
        self.error: str | None = None

    def settle(self, error: str | None) -> None:
        self.settled, self.error = True, error


def _parse_position(text: str) -> tuple[str, int]:
    name, _, offset = text.partition(":")
    if _FILE.fullmatch(name) and offset.isdecimal():
        return name, int(offset)
    return "", 0  # then all that there is is looked through
