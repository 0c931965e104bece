"""The collected position of each log of a run directory, in a file that is removed with the directory.

A chunk is announced before its first document is appended. After a crash it is collected again with the
same ids, times and index, so that a reader that drops known ids sees each document once.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.files import write_json
from spark_runner.protocol.plain_file import parse_json, read_plain

POSITIONS = "collected.json"
_MAX_BYTES = 64 * 1024
_MAX_OFFSET, _MAX_TIME = 1 << 62, 1e11


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes from `offset` up to `upto`, read at `time` (epoch, seconds); empty if both are equal."""

    offset: int = 0
    upto: int = 0
    time: float = 0.0

    @classmethod
    def of(cls, document: Any) -> "Chunk":
        """The chunk in a file that a driver of this user could write; raises ValueError, TypeError."""
        chunk = cls(**document)
        is_sound = all(type(each) is int and 0 <= each < _MAX_OFFSET for each in (chunk.offset, chunk.upto))
        if not is_sound or not 0 <= chunk.time < _MAX_TIME:
            message = "it holds no position"
            raise ValueError(message)
        return chunk


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
            found: dict[str, Any] = parse_json(read_plain(self._path, _MAX_BYTES))
            self._chunks = {stream: Chunk.of(chunk) for stream, chunk in found["streams"].items()}
            self.is_done = bool(found["done"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._chunks = {}  # all is collected again, with the same ids
