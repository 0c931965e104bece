"""The archives on the disk: whole or not there, checked before each use, the oldest removed.

<cache dir>/class-archives/           mode 0700: whoever can write here can run code in our drivers
    <key>.jsa       the archive
    <key>.json      its size and sum, written last; changed whenever the archive is used
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

from spark_runner.directories import is_ours
from spark_runner.file_lock import alone_in

MAX_ARCHIVES = 4  # about 180 MB each: two kinds of drivers, and those of the last upgrade
_LEAST_BYTES = 1 << 20  # what is smaller holds no Spark
_CHUNK_BYTES = 1 << 22


class ArchiveStore:
    """Archives by key. Thread-safe; any number of processes may use one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.making = directory / "making"
        self._checked: dict[str, tuple[int, ...]] = {}  # key -> the file that was summed up in this process
        self._guard = threading.Lock()

    def find(self, key: str) -> Path | None:
        """The archive, if it is there and exactly as it was made."""
        path, note = self._archive(key), self._note(key)
        try:
            with self._guard:
                if not self._is_whole(key, path, note):
                    return None
            with contextlib.suppress(OSError):  # a read-only cache: then nobody removes anything there
                os.utime(note)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return path

    def publish(self, key: str, made: Path) -> None:
        """Take over a finished archive; raises OSError, ValueError for one that cannot be right."""
        size = made.stat().st_size
        if size < _LEAST_BYTES:
            raise ValueError(f"the archive has {size} bytes only")
        made.chmod(0o444)  # the directory says who may read it
        note = self.directory / f"{key}.json.{os.getpid()}"
        note.write_text(json.dumps({"bytes": size, "crc32": _sum(made)}), encoding="ascii")
        self._note(key).unlink(missing_ok=True)  # an old sum and a new archive are never taken for a pair
        made.replace(self._archive(key))
        note.replace(self._note(key))

    def remove(self, key: str) -> None:
        """Take an archive away; who has it open goes on with it. Raises OSError."""
        self._note(key).unlink(missing_ok=True)
        self._archive(key).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what was used longest ago, and what was left half-done. Only for who holds the lock."""
        notes = sorted(self.directory.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        kept = {note.stem for note in notes[:MAX_ARCHIVES]}
        for path in self.directory.iterdir():
            key, _, kind = path.name.partition(".")
            if kind and (key not in kept or kind not in {"jsa", "json"}):
                path.unlink(missing_ok=True)
        shutil.rmtree(self.making, ignore_errors=True)

    def locked(self) -> AbstractContextManager[bool]:
        """Be the only one that makes an archive; False when another one is. Raises OSError."""
        return alone_in(self.directory)

    def _is_whole(self, key: str, path: Path, note: Path) -> bool:
        found = path.lstat()
        if not (stat.S_ISREG(found.st_mode) and all(map(is_ours, (self.directory.stat(), found)))):
            return False
        identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if self._checked.get(key) != identity:
            told = json.loads(note.read_bytes())
            # The JVM itself looks at the header alone: damage behind it would end the driver, or worse.
            if (told["bytes"], told["crc32"]) != (found.st_size, _sum(path)):
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
