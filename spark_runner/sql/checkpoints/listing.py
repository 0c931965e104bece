"""The checkpoints in a folder of a worker: `FOLDER/JOB/TARGET`."""

import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.folders import Folders
from spark_runner.sql.checkpoints.record import RECORD, Record


@dataclass(frozen=True)
class FoundCheckpoint:
    """One checkpoint, or a folder in its place that is none."""

    name: str  # of the job
    target: str
    url: str
    batches: int = 0  # that are finished
    changed: float | None = None  # seconds since the epoch: the last start or end of a batch
    fingerprint: str = ""
    error: str = ""  # why it cannot be used

    def to_json(self) -> dict[str, Any]:
        """The form in the answer of another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "FoundCheckpoint":
        """Read that form."""
        return cls(**document)


def checkpoints_in(folders: Folders, place: str, name: str = "") -> Iterator[FoundCheckpoint]:
    """The checkpoints of all jobs, or of one; raises ConnectorError where a folder cannot be listed."""
    jobs = [urllib.parse.quote(name, safe="")] if name else _visible(folders.names(place))
    for job in jobs:
        for target in _visible(folders.names(f"{place}/{job}")):
            yield _found(folders, urllib.parse.unquote(job), target, f"{place}/{job}/{target}")


def _found(folders: Folders, name: str, target: str, url: str) -> FoundCheckpoint:
    shown = urllib.parse.unquote(target)
    try:
        text = folders.read(f"{url}/{RECORD}")
        if text is None:
            return FoundCheckpoint(name, shown, url, error=f"has no {RECORD}")
        fingerprint = Record.of(text, url).fingerprint
        batches = finished_batches(folders, url)
        changed = [folders.modified(f"{url}/{part}") for part in (RECORD, "offsets", "commits")]
    except ConnectorError as error:
        return FoundCheckpoint(name, shown, url, error=str(error))
    return FoundCheckpoint(name, shown, url, batches, max(filter(None, changed), default=None), fingerprint)


def finished_batches(folders: Folders, url: str) -> int:
    """How many batches of a stream have ended; Spark keeps the files of the last ones alone."""
    return 1 + max(
        (int(name) for name in folders.names(f"{url}/commits") or () if name.isdecimal()), default=-1
    )


def has_begun(folders: Folders, url: str) -> bool:
    """Whether a batch has begun."""
    return any(name.isdecimal() for name in folders.names(f"{url}/offsets") or ())


def offsets_reached(folders: Folders, url: str) -> tuple[str, ...]:
    """The offset of each stream in the last batch that has begun, as JSON; empty without one."""
    names = [name for name in folders.names(f"{url}/offsets") or () if name.isdecimal()]
    text = folders.read(f"{url}/offsets/{max(names, key=int)}") if names else None
    return tuple(line for line in (text or "").splitlines()[2:] if line.startswith("{"))  # others have none


def _visible(names: list[str] | None) -> list[str]:
    return [name for name in names or () if not name.startswith(".")]
