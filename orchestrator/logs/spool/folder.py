"""The folder of one producer: made by a process for itself, later adopted by another when that has ended."""

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.errors import SpoolUnusable
from orchestrator.logs.files import FileLock, write_json
from orchestrator.logs.spool.segments import segments_in

_LOCK = "lock"
_OWNER = "owner.json"
_DRAFT_SECONDS = 3_600.0  # far longer than a folder is made
_PRODUCER_BYTES = 8  # random: the ids of documents begin with it, so none may ever come twice


@dataclass(frozen=True, slots=True, eq=False)
class SpoolFolder:
    """A producer's folder that this process holds, by a lock that ends with the process."""

    path: Path
    _lock: FileLock

    @property
    def producer(self) -> str:
        """The name of the folder, with which the ids of its documents begin."""
        return self.path.name

    @classmethod
    def create(cls, root: Path) -> "SpoolFolder":
        """A new one below `root`, private; raises SpoolUnusable."""
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_drafts(root)
            # Made under another name and locked there: nobody adopts what is not whole yet.
            producer = secrets.token_hex(_PRODUCER_BYTES)
            draft = root / f".{producer}"
            draft.mkdir(mode=0o700)
            lock = FileLock(draft / _LOCK)
            if not lock.acquire():
                raise SpoolUnusable(f"the log spool {root} cannot be locked")
            write_json(
                draft / _OWNER,
                {"pid": os.getpid(), "host": os.uname().nodename, "since": time.time()},
            )
            path = root / producer
            draft.rename(path)
        except OSError as error:
            raise SpoolUnusable(f"the log spool {root} cannot be used: {error.strerror or error}") from error
        return cls(path, lock)

    @classmethod
    def adopt(cls, path: Path) -> "SpoolFolder | None":
        """That of a process that has ended; None while somebody holds it, or where it is gone."""
        try:
            lock = FileLock(path / _LOCK)
            if not lock.acquire():
                return None
            if not path.is_dir():  # removed by its last holder
                lock.release()
                return None
        except OSError:
            return None
        return cls(path, lock)

    def remove(self) -> None:
        """Remove it with all that is in it, and let go of it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Let others adopt it."""
        self._lock.release()


def _remove_drafts(root: Path) -> None:
    """Remove what processes have left that were killed before their folder was whole."""
    for draft in root.glob("." + "[0-9a-f]" * 2 * _PRODUCER_BYTES):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
                shutil.rmtree(draft)


def folders_in(root: Path) -> list[Path]:
    """The folders of all producers of this host, whoever holds them."""
    try:
        found = sorted(root.iterdir())
    except OSError:
        return []
    return [path for path in found if len(path.name) == 2 * _PRODUCER_BYTES and path.is_dir()]


def orphans(root: Path, held: set[Path]) -> Iterator[SpoolFolder]:
    """Adopt the folders whose processes have ended; `held` are our own."""
    for path in folders_in(root):
        if path not in held and (folder := SpoolFolder.adopt(path)) is not None:
            yield folder


def expire(root: Path, *, max_age: float, most: int) -> None:
    """Remove what processes that have ended left: what is older than so many seconds, and all but the newest.

    For hosts without a target, where the spool is the store; the bound in bytes holds besides.
    """
    ages = sorted((_age(path), path) for path in folders_in(root))
    for number, (age, path) in enumerate(ages):
        if (age > max_age or number >= most) and (folder := SpoolFolder.adopt(path)) is not None:
            folder.remove()


def _age(path: Path) -> float:
    with contextlib.suppress(OSError):
        return time.time() - max(entry.stat().st_mtime for entry in path.iterdir())
    return 0.0


def owner_of(path: Path) -> dict[str, Any]:
    """Who made a folder; empty where that cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        document = json.loads((path / _OWNER).read_bytes())
        if isinstance(document, dict):
            return document
    return {}


def bytes_in(root: Path) -> int:
    """What all segments of all folders take, in bytes."""
    return sum(segment.size() for path in folders_in(root) for segment in segments_in(path))
