"""Lists the spools of this host, their progress, and the dead letters."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.spool.folder import SpoolFolder, folders_in, owner_of
from orchestrator.logs.spool.position import read_checkpoint
from orchestrator.logs.spool.segments import segments_in

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
