"""The schedules as the leader knows them: read again only when their nodes change."""

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from loguru import logger

from orchestrator.errors import CorruptSchedule
from orchestrator.schedules.book import Book
from orchestrator.schedules.entry import Entry
from queues.errors import InvalidName
from queues.folder import WatchedFolder

_RESCAN_SECONDS = (
    60.0  # how long a lost watch can hide a change; what is written checks the version in any case
)


@dataclass(frozen=True, slots=True)
class Known:
    """One schedule, the version of its node, and when something is to be done for it."""

    entry: Entry
    version: int
    next_ms: int | None

    @property
    def name(self) -> str:
        """Its name."""
        return self.entry.definition.name


class KnownSchedules:
    """What stands in the nodes, kept up by watches: nothing is read while nothing changes."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._known: dict[str, Known] = {}
        self._folder = WatchedFolder(book.session, book.nodes.schedules, lambda: None)
        self._changed: deque[str] = deque()  # filled by watches, on kazoo's thread
        self._rescan_at = -math.inf

    def __iter__(self) -> Iterator[Known]:
        return iter(list(self._known.values()))

    def on_change(self, name: str) -> None:
        """The node of a schedule has changed: called on kazoo's thread."""
        self._changed.append(name)

    def refresh(self) -> None:
        """Read what has changed, and now and then all."""
        names: list[str] = []
        if time.monotonic() >= self._rescan_at:
            # A folder that is not there cannot be watched.
            self._book.session.ensure_path(self._book.nodes.schedules)
            self._rescan_at = time.monotonic() + _RESCAN_SECONDS
            self._folder.changed = True
            self._changed.extend(self._known)
        if self._folder.refresh():
            self._changed.extend(set(self._folder.names) ^ self._known.keys())
        while self._changed:
            names.append(self._changed.popleft())
        try:
            for name in dict.fromkeys(names):
                self.read(name)
        except BaseException:
            self._changed.extend(names)  # also those that were read: the others must not be forgotten
            raise

    def read(self, name: str) -> Known | None:
        """Read one schedule again; None when it is gone, or cannot be read."""
        self._known.pop(name, None)
        try:
            found = self._book.read(name, _Changed(self, name))
        except (CorruptSchedule, InvalidName) as error:  # one that is none of ours keeps no other back
            logger.error("{}", error)
            return None
        return None if found is None else self.note(*found)

    def note(self, entry: Entry, version: int) -> Known:
        """Take note of what was read or written."""
        known = Known(entry, version, entry.next_ms)
        self._known[known.name] = known
        return known


@dataclass(frozen=True, slots=True)
class _Changed:
    # Equal for equal names: sessions keep watchers in a set per path.
    schedules: KnownSchedules
    name: str

    def __call__(self) -> None:
        self.schedules.on_change(self.name)
