"""The leader's copy of all schedules, read again when a node changes."""

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from loguru import logger

from orchestrator.model.errors import CorruptSchedule
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.store import ScheduleStore
from queues import AccessDenied, InvalidName, WatchedFolder

_RESCAN_SECONDS = 60.0  # how long a lost watch can hide a change; each write checks the version in any case


@dataclass(frozen=True, slots=True)
class KnownSchedule:
    """One schedule, the version of its node, and its next fire time."""

    record: ScheduleRecord
    version: int
    next_ms: int | None

    @property
    def name(self) -> str:
        """The name of the schedule."""
        return self.record.definition.name


class KnownSchedules:
    """The records of all schedules, kept current by watches."""

    def __init__(self, store: ScheduleStore) -> None:
        self._store = store
        self._known: dict[str, KnownSchedule] = {}
        self._folder = WatchedFolder(store.session, store.nodes.schedules, lambda: None)
        self._changed: deque[str] = deque()  # filled by watches, on kazoo's thread
        self._rescan_at = -math.inf

    def __iter__(self) -> Iterator[KnownSchedule]:
        return iter(list(self._known.values()))

    def on_change(self, name: str) -> None:
        """Mark the node of a schedule as changed; called on kazoo's thread."""
        self._changed.append(name)

    def refresh(self) -> None:
        """Read the changed schedules, and all of them once a minute."""
        names: list[str] = []
        if time.monotonic() >= self._rescan_at:
            # A missing folder cannot be watched.
            self._store.session.ensure_path(self._store.nodes.schedules)
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
            self._changed.extend(names)  # all of them, so that the unread ones are not lost
            raise

    def read(self, name: str) -> KnownSchedule | None:
        """Read one schedule again; None if it is gone or cannot be read."""
        self._known.pop(name, None)
        try:
            found = self._store.read(name, _ScheduleWatch(self, name))
        except (CorruptSchedule, InvalidName, AccessDenied) as error:  # it must not block the others
            logger.error("{}", error)
            return None
        return None if found is None else self.store(*found)

    def store(self, record: ScheduleRecord, version: int) -> KnownSchedule:
        """Store a record that was read or written."""
        known = KnownSchedule(record, version, record.next_ms)
        self._known[known.name] = known
        return known


@dataclass(frozen=True, slots=True)
class _ScheduleWatch:
    # Equal for equal names, because sessions keep the watchers of a path in a set.
    schedules: KnownSchedules
    name: str

    def __call__(self) -> None:
        self.schedules.on_change(self.name)
