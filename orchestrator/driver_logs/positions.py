"""How far the logs of one run directory were taken, in a file there that goes with it.

A chunk is announced before the first of its documents is appended. After a crash it is taken again with the
same ids, times and index, so that a reader who drops what he knows by its id sees each document once.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.files import write_json

POSITIONS = "collected.json"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes from `offset` up to `upto`, read at `time` (epoch, seconds); none when both are equal."""

    offset: int = 0
    upto: int = 0
    time: float = 0.0


class Positions:
    """The chunk of each stream that may not be appended yet; what stands before it is."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / POSITIONS
        self.is_done = False  # the driver has ended, and nothing is left to be read
        self._chunks: dict[str, Chunk] = {}
        self._unsaved = False
        self._load()

    def chunk(self, stream: str) -> Chunk:
        """The last one that was announced."""
        return self._chunks.get(stream, Chunk())

    def announce(self, stream: str, chunk: Chunk) -> None:
        """Say what comes next; raises OSError, FileNotFoundError where the directory is gone."""
        self._chunks[stream] = chunk
        self._save()

    def settle(self, stream: str, upto: int) -> None:
        """Say that all before is appended; saved with the next word, or by `save`."""
        self._chunks[stream] = Chunk(upto, upto)
        self._unsaved = True

    def save(self) -> None:
        """Keep what was settled; raises OSError."""
        if self._unsaved:
            self._save()

    def finish(self) -> None:
        """Nothing will come any more; raises OSError."""
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
            self._chunks = {}  # then all is taken again: the ids are the same
