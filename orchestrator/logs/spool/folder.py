"""The folder of one producer. Its process creates it; another process adopts it after that one has ended."""

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.errors import SpoolUnusable
from orchestrator.logs.files import FileLock, write_json
from orchestrator.logs.spool.position import read_checkpoint
from orchestrator.logs.spool.segments import segments_in

_LOCK = "lock"
_OWNER = "owner.json"
_DRAFT_SECONDS = 3_600.0  # far longer than the creation of a folder takes
_PRODUCER_BYTES = 8  # random: prefix of the ids of documents, so it must be unique


@dataclass(frozen=True, slots=True, eq=False)
class SpoolFolder:
    """A producer's folder that this process holds by a file lock, which ends with the process."""

    path: Path
    _lock: FileLock

    @property
    def producer(self) -> str:
        """The name of the folder, which is the prefix of its documents' ids."""
        return self.path.name

    @classmethod
    def create(cls, root: Path) -> "SpoolFolder":
        """Create a private folder below `root`; raises SpoolUnusable."""
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_drafts(root)
            # Created under another name and locked there, so that no process adopts an incomplete folder.
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
        """Adopt the folder of a process that has ended; None if it is held or does not exist."""
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
        """Remove the folder with its contents, and release it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Release the lock, so that another process can adopt the folder."""
        self._lock.release()


def _remove_drafts(root: Path) -> None:
    """Remove incomplete folders of processes that were killed during creation."""
    for draft in root.glob("." + "[0-9a-f]" * 2 * _PRODUCER_BYTES):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
                shutil.rmtree(draft)


def folders_in(root: Path) -> list[Path]:
    """The folders of all producers of this host, held or not."""
    try:
        found = sorted(root.iterdir())
    except OSError:
        return []
    return [path for path in found if len(path.name) == 2 * _PRODUCER_BYTES and path.is_dir()]


def orphans(root: Path, held: set[Path]) -> Iterator[SpoolFolder]:
    """Adopt the folders whose processes have ended, except those in `held`, which are our own."""
    for path in folders_in(root):
        if path not in held and (folder := SpoolFolder.adopt(path)) is not None:
            yield folder


def expire(root: Path, *, max_age: float, most: int) -> None:
    """Remove folders of ended processes older than `max_age` seconds, or not among the `most` newest.

    For hosts without a target, whose logs stay in the spool. The disk quota applies as well.
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
    """The process that created a folder: pid, host and start; empty if its file cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        document = json.loads((path / _OWNER).read_bytes())
        if isinstance(document, dict):
            return document
    return {}


def bytes_in(root: Path) -> int:
    """The size of all segments of all folders, in bytes."""
    return sum(segment.size() for path in folders_in(root) for segment in segments_in(path))


DEAD_LETTERS = "dead-letters"  # directory beside that of the spools
STATUS = "shipper.json"  # file in the folder of a spool: the status of its shipper


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """The present state of one spool."""

    producer: str
    pid: int
    is_live: bool  # its process runs; else the spool can be adopted
    bytes: int  # on the disk
    waiting: int  # bytes that are not delivered; compressed segments count in full
    trouble: str
    shipper: dict[str, Any]  # the last status of its shipper

    def document(self) -> dict[str, Any]:
        """The state as a JSON object."""
        return asdict(self)


def spools_in(root: Path) -> Sequence[SpoolStatus]:
    """All spools of this host."""
    return [_status(path) for path in folders_in(root)]


def _status(path: Path) -> SpoolStatus:
    adopted = SpoolFolder.adopt(path)  # for a moment: a shipper that finds it held looks again in seconds
    if adopted is not None:
        adopted.release()
    segments, delivered = segments_in(path), read_checkpoint(path)
    sizes = {segment.number: segment.size() for segment in segments}
    waiting = sum(size for number, size in sizes.items() if number >= max(1, delivered.segment))
    if delivered.segment in sizes:
        waiting -= min(sizes[delivered.segment], delivered.offset)
    shipper = dict[str, Any]()
    with suppress(OSError, ValueError):
        shipper = dict(json.loads((path / STATUS).read_bytes()))
    is_live = adopted is None
    return SpoolStatus(
        producer=path.name,
        pid=int(owner_of(path).get("pid", 0)),
        is_live=is_live,
        bytes=sum(sizes.values()),
        waiting=waiting,
        trouble=str(shipper.get("trouble", "")) if is_live else "",
        shipper=shipper,
    )


def dead_letters_in(root: Path) -> dict[str, int]:
    """The files of dead letters, with the number of records in each."""
    found = dict[str, int]()
    for path in sorted((root.parent / DEAD_LETTERS).glob("*.jsonl")):
        with suppress(OSError), path.open("rb") as file:
            found[str(path)] = sum(1 for _ in file)
    return found
