"""The archives on disk: complete or absent, checked before each use, the oldest removed.

<cache dir>/class-archives/           mode 0700: write access here allows to run code in drivers
    <key>.jsa       the archive
    <key>.json      its size and checksum, written last; its mtime is the time of the last use
    lock            held by the one worker that makes an archive
    making/         run directories of the drivers that make one
"""

import contextlib
import json
import os
import shutil
import stat
import threading
import zlib
from contextlib import AbstractContextManager
from pathlib import Path

from orchestrator.logs.files import folder_lock, write_json
from spark_runner.directories import is_ours

MAX_ARCHIVES = 4  # about 180 MB each: two kinds of drivers, before and after an upgrade
_LEAST_BYTES = 1 << 20  # a smaller file cannot hold Spark's classes
_CHUNK_BYTES = 1 << 22


class ArchiveStore:
    """Archives by key. Thread-safe; any number of processes may use one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.making = directory / "making"
        self._checked: dict[str, tuple[int, ...]] = {}  # key -> the file whose checksum this process verified
        self._guard = threading.Lock()

    def find(self, key: str) -> Path | None:
        """The archive, if it exists unchanged; None otherwise."""
        path, note = self._archive(key), self._note(key)
        try:
            with self._guard:
                if not self._is_whole(key, path, note):
                    return None
            with contextlib.suppress(OSError):  # a read-only cache: nothing is removed there
                os.utime(note)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return path

    def publish(self, key: str, made: Path) -> None:
        """Move a finished archive into the store; raises OSError, and ValueError if it is too small."""
        size = made.stat().st_size
        if size < _LEAST_BYTES:
            raise ValueError(f"the archive has only {size} bytes")
        made.chmod(0o444)  # the directory's mode limits the readers
        note = {"bytes": size, "crc32": _sum(made)}
        self._note(key).unlink(missing_ok=True)  # an old checksum must never be paired with a new archive
        made.replace(self._archive(key))
        write_json(self._note(key), note, mode=None)

    def remove(self, key: str) -> None:
        """Remove an archive; processes that have it open keep it. Raises OSError."""
        self._note(key).unlink(missing_ok=True)
        self._archive(key).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove the least recently used archives and incomplete files; the caller holds the lock."""
        notes = sorted(self.directory.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        kept = {note.stem for note in notes[:MAX_ARCHIVES]}
        for path in self.directory.iterdir():
            key, _, kind = path.name.partition(".")
            if kind and (key not in kept or kind not in {"jsa", "json"}):
                path.unlink(missing_ok=True)
        shutil.rmtree(self.making, ignore_errors=True)

    def locked(self) -> AbstractContextManager[bool]:
        """The lock for making an archive; False if another process holds it. Raises OSError."""
        return folder_lock(self.directory)

    def _is_whole(self, key: str, path: Path, note: Path) -> bool:
        found = path.lstat()
        if not (stat.S_ISREG(found.st_mode) and all(map(is_ours, (self.directory.stat(), found)))):
            return False
        identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if self._checked.get(key) != identity:
            noted = json.loads(note.read_bytes())
            # The JVM itself checks only the header: damage behind it would crash the driver, or worse.
            if (noted["bytes"], noted["crc32"]) != (found.st_size, _sum(path)):
                return False
            self._checked[key] = identity
        return note.exists()

    def _archive(self, key: str) -> Path:
        return self.directory / f"{key}.jsa"

    def _note(self, key: str) -> Path:
        return self.directory / f"{key}.json"


def _sum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            value = zlib.crc32(chunk, value)
    return value
