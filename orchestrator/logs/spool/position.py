"""A place in a spool, and the file that remembers how far it was delivered."""

import json
from dataclasses import dataclass
from pathlib import Path

from orchestrator.logs.files import write_json

CHECKPOINT = "checkpoint.json"
_MAX_OFFSET = 2**40  # beyond the end of any segment, and still a number that the system takes


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Everything before this offset of this segment, and before this segment."""

    segment: int = 0
    offset: int = 0  # bytes of the segment as it was written


def read_checkpoint(folder: Path) -> Position:
    """How far the spool was delivered; its beginning where nobody has said, or what was said is torn.

    That costs a second delivery, which ids make harmless.
    """
    try:
        document = json.loads((folder / CHECKPOINT).read_bytes())
        position = Position(int(document["segment"]), int(document["offset"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Position()
    is_place = position.segment >= 0 and 0 <= position.offset < _MAX_OFFSET
    return position if is_place else Position()


def write_checkpoint(folder: Path, position: Position) -> None:
    """Remember durably that all before `position` is delivered; raises OSError."""
    write_json(folder / CHECKPOINT, {"segment": position.segment, "offset": position.offset}, durable=True)
