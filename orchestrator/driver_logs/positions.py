"""The collected position of each log of a run directory, in a file that is removed with the directory.

A chunk is announced before its first document is appended. After a crash it is collected again with the
same ids, times and index, so that a reader that drops known ids sees each document once.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.files import write_json

POSITIONS = "collected.json"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes from `offset` up to `upto`, read at `time` (epoch, seconds); empty if both are equal."""

    offset: int = 0
    upto: int = 0
    time: float = 0.0


class Positions:
    """The chunk of each stream that may not be appended yet; all bytes before it are."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / POSITIONS
        self.is_done = False  # the driver has ended, and all its output is read
        self._chunks: dict[str, Chunk] = {}
        self._unsaved = False
        self._load()

    def chunk(self, stream: str) -> Chunk:
        """The chunk that was announced last."""
        return self._chunks.get(stream, Chunk())

    def announce(self, stream: str, chunk: Chunk) -> None:
        """Store the next chunk; raises OSError, FileNotFoundError if the directory is gone."""
        self._chunks[stream] = chunk
        self._save()

    def commit(self, stream: str, upto: int) -> None:
        """Record that all bytes before `upto` are appended; saved with the next `announce`, or by `save`."""
        self._chunks[stream] = Chunk(upto, upto)
        self._unsaved = True

    def save(self) -> None:
        """Write committed positions; raises OSError."""
        if self._unsaved:
            self._save()

    def finish(self) -> None:
        """Mark the run as completely collected; raises OSError."""
        self.is_done = True
        self._save()

    def _save(self) -> None:
        streams = {stream: asdict(chunk) for stream, chunk in self._chunks.items()}
        write_json(self._path, {"done": self.is_done, "streams": streams})
        self._unsaved = False

    def _load(self) -> None:
        try:
            found: dict[str, Any] = json.loads(self._path.read_bytes())
            self._chunks = {stream: Chunk(**chunk) for stream, chunk in found["streams"].items()}
            self.is_done = bool(found["done"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._chunks = {}  # all is collected again, with the same ids
