"""A position in a spool, and the checkpoint file with the delivered position."""

import json
from dataclasses import dataclass
from pathlib import Path

from orchestrator.logs.files import write_json

CHECKPOINT = "checkpoint.json"
_MAX_OFFSET = 2**40  # larger than any segment, and still valid for the system


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """All earlier segments, and this segment up to the offset."""

    segment: int = 0
    offset: int = 0  # bytes of the uncompressed segment


def read_checkpoint(folder: Path) -> Position:
    """The delivered position of a spool; its beginning if the checkpoint is missing or damaged.

    Records are then delivered a second time, which their ids make harmless.
    """
    try:
        document = json.loads((folder / CHECKPOINT).read_bytes())
        position = Position(int(document["segment"]), int(document["offset"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Position()
    is_valid = position.segment >= 0 and 0 <= position.offset < _MAX_OFFSET
    return position if is_valid else Position()


def write_checkpoint(folder: Path, position: Position) -> None:
    """Store durably that all records before `position` are delivered; raises OSError."""
    write_json(folder / CHECKPOINT, {"segment": position.segment, "offset": position.offset}, durable=True)
