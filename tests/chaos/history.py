"""Histories on disk: one file of JSON lines per actor, readable whenever the actor is killed."""

import json
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Self, Unpack

from tests.chaos.events import Event, Fields, Kind

SUFFIX = ".jsonl"

_STORED = tuple(field.name for field in fields(Event) if field.name != "incarnation")

_UNSAID: tuple[object, ...] = (None, "", {})


class CorruptHistory(Exception):
    """A line within a history cannot be read, and no actor was killed while it wrote it."""


class History:
    """Appends events of one actor; safe to use from several threads. A context manager.

    One write per line to a file opened for appending: only the last line of a killed actor can be torn.
    The next process of the same name appends to the file after a new line.
    """

    def __init__(self, folder: Path, actor: str) -> None:
        self.actor = actor
        self.path = folder / f"{actor}{SUFFIX}"
        folder.mkdir(parents=True, exist_ok=True)
        torn = _is_torn(self.path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if torn:
            self._append(b"\n")
        self.add(Kind.STARTED, extra={"pid": os.getpid()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, kind: Kind, **fields: Unpack[Fields]) -> None:
        """Write one event to the kernel: after the return it survives a SIGKILL."""
        event = Event(kind, actor=self.actor, t=time.monotonic_ns(), **fields)
        self._append(to_line(event))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, line: bytes) -> None:
        if os.write(self._file, line) != len(line):
            raise OSError(f"a history line was not written as a whole to {self.path}; is the disk full?")


def to_line(event: Event) -> bytes:
    """One line of JSON; unset fields are omitted."""
    fields = {name: getattr(event, name) for name in _STORED}
    document = {name: value for name, value in fields.items() if value not in _UNSAID and value is not False}
    return json.dumps({**document, "t": event.t}, separators=(",", ":")).encode() + b"\n"


def read_history(path: Path) -> Iterator[Event]:
    """The events of one actor; raises CorruptHistory.

    A torn line is not an error where the actor was killed: at the end, or before another start of the actor.
    """
    incarnation, torn_at = -1, 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            document = _parse(line)
            if document is None:
                if torn_at:
                    raise CorruptHistory(f"{path}: line {torn_at} cannot be read")
                torn_at = number
                continue
            kind = Kind(document.pop("kind"))
            if kind is Kind.STARTED:
                incarnation, torn_at = incarnation + 1, 0
            elif torn_at:
                raise CorruptHistory(f"{path}: line {torn_at} cannot be read")
            yield Event(kind, incarnation=incarnation, **document)


def read_histories(folder: Path, shard: int = 0, shards: int = 1) -> Iterator[Event]:
    """The events of all actors of a folder; with `shards`, only those of the items of one shard.

    All events of an item are in one shard; events of no item are in the first.
    """
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        for event in read_history(path):
            if in_shard(event.id, shard, shards):
                yield event


def in_shard(item_id: str, shard: int, shards: int) -> bool:
    """Whether an item is in a shard."""
    return zlib.crc32(item_id.encode()) % shards == shard


def _parse(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _is_torn(path: Path) -> bool:
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
