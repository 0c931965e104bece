"""The store of schedules in ZooKeeper, and the leader's copy of it, read again when a node changes."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loguru import logger

from orchestrator.audit.trail import Trail
from orchestrator.connections.store import ConnectionStore
from orchestrator.model.definition import Definition
from orchestrator.model.errors import CorruptSchedule, ScheduleNotFound
from orchestrator.model.job import view_of
from orchestrator.model.paths import Nodes
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.runs import compile_registration
from orchestrator.schedules.view import ScheduleView
from queues import (
    Check,
    Conflict,
    CorruptRecord,
    Create,
    Delete,
    InvalidName,
    Layout,
    Operation,
    Record,
    Session,
    Set,
    WatchedFolder,
    check_id,
    commit,
)


class ScheduleStore:
    """All schedules below one root. Safe to use from several threads.

    `now_ms`: returns epoch milliseconds of the ensemble, as `QueueSet.clock.now_ms` does.
    """

    def __init__(self, session: Session, nodes: Nodes, now_ms: Callable[[], int]) -> None:
        self.session = session
        self.nodes = nodes
        self.now_ms = now_ms
        self._trail = Trail(session, nodes)

    def list(self) -> "tuple[ScheduleView, ...]":
        """All schedules by name; an unreadable one is included with the reason."""
        names = sorted(self.session.children(self.nodes.schedules) or [])
        views, paths = list[ScheduleView](), [self.nodes.schedule(name) for name in names]
        for name, path, found in zip(names, paths, self.session.get_many(paths), strict=True):
            if found is None:
                continue  # removed since
            try:
                views.append(self._view(ScheduleRecord.decode(name, self._path(name), found[0])))
            except (CorruptSchedule, InvalidName) as error:
                views.append(ScheduleView.unreadable(name, path, str(error)))
        return tuple(views)

    def get(self, name: str) -> ScheduleView:
        """One schedule, and whether its last run has not ended; raises ScheduleNotFound, CorruptSchedule."""
        view = self._view(self._read(name)[0])
        return (
            view if view.last_run is None else view.model_copy(update={"running": self._runs(view.last_run)})
        )

    def _runs(self, job_id: str) -> bool:
        found = self.session.get(Layout(self.nodes.root).record(job_id), await_creation=False)
        try:
            return found is not None and not view_of(Record.decode(job_id, found[0])).is_final
        except CorruptRecord:  # it will move to dead
            return False

    def put(self, definition: Definition) -> ScheduleView:
        """Register a definition with a schedule, or replace the one of its name; a paused one stays paused.

        Raises DefinitionError or SqlError for a definition that cannot run, and CorruptSchedule.
        """
        plan = compile_registration(definition, ConnectionStore(self.session, self.nodes).find)
        name, now, act = definition.name, self.now_ms(), self._trail.act("register")
        while True:
            try:
                return self._change(
                    name, act.action, lambda record: record.replaced(definition, plan, now, act.by)
                )
            except ScheduleNotFound:
                record = ScheduleRecord.registered_at(definition, plan, now, act)
            self.session.ensure_path(self.nodes.schedules)
            try:
                made = [Create(self._path(name), record.encode()), Create(self._mark(record))]
                commit(self.session, [*made, self._trail.entry(act, "schedule", name, **_facts(record))])
            except Conflict:
                continue  # another client was faster, or the reply to this multi was lost: replace it
            return self._view(record)

    def pause(self, name: str) -> ScheduleView:
        """Stop enqueueing runs; raises ScheduleNotFound, CorruptSchedule."""
        return self._change(name, "pause", ScheduleRecord.pausing)

    def resume(self, name: str) -> ScheduleView:
        """Enqueue runs again, for fire times after now; raises ScheduleNotFound, CorruptSchedule."""
        now = self.now_ms()
        return self._change(name, "resume", lambda record: record.resumed(now))

    def remove(self, name: str) -> None:
        """Remove a schedule; its runs stay. Raises ScheduleNotFound."""
        path, act = self._path(name), self._trail.act("remove")
        while (marks := self.session.children(path)) is not None:
            try:
                gone = [*(Delete(f"{path}/{mark}") for mark in marks), Delete(path)]
                commit(self.session, [*gone, self._trail.entry(act, "schedule", name)])
            except Conflict as conflict:
                # An ambiguous conflict comes from a lost reply. Otherwise it was registered anew just now.
                if not conflict.ambiguous or conflict.reason == "NotEmpty":
                    continue
            return
        raise ScheduleNotFound(name)

    def _view(self, record: ScheduleRecord) -> ScheduleView:
        return ScheduleView.of(record, self._path(record.definition.name), self.now_ms())

    def _path(self, name: str) -> str:
        return self.nodes.schedule(check_id(name))  # a job name is a valid id: see Definition

    def _mark(self, record: ScheduleRecord) -> str:
        return f"{self._path(record.definition.name)}/{record.registration}"

    def _change(
        self, name: str, action: str, change: Callable[[ScheduleRecord], ScheduleRecord]
    ) -> ScheduleView:
        act = self._trail.act(action)
        while True:
            before, version = self._read(name)
            after = change(before)
            if after != before:
                after = after.model_copy(update={"changed": act})
                event = self._trail.entry(act, "schedule", name, **_facts(after))
                try:
                    self.write(after, version, extra_operations=[event])
                except Conflict:
                    continue  # the leader or another client has changed it since: apply the change to that
            return self._view(after)

    # ------------------------------------------------------------------ for the leader
    def _read(self, name: str) -> tuple[ScheduleRecord, int]:
        found = self.read(name)
        if found is None:
            raise ScheduleNotFound(name)
        return found

    def read(self, name: str, wake: Callable[[], None] | None = None) -> tuple[ScheduleRecord, int] | None:
        """The record and its version, None if there is none; `wake` is called once when it changes.

        Raises CorruptSchedule.
        """
        path = self._path(name)
        found = self.session.get(path, wake, await_creation=False)
        return None if found is None else (ScheduleRecord.decode(name, path, found[0]), found[1].version)

    def write(
        self,
        record: ScheduleRecord,
        version: int,
        fence: Sequence[Operation] = (),
        extra_operations: Sequence[Operation] = (),
    ) -> tuple[ScheduleRecord, int]:
        """Write a record that was read at this version; returns it with the new version. Raises Conflict.

        `fence`: checks that have to hold; `extra_operations`: further operations in the same multi.
        """
        written = record if record.registration else record.marked()
        mark = Check(self._mark(record)) if written is record else Create(self._mark(written))
        path = self._path(record.definition.name)
        commit(self.session, [*fence, mark, Set(path, written.encode(), version), *extra_operations])
        return written, version + 1

    def unchanged(self, record: ScheduleRecord, version: int) -> tuple[Operation, ...]:
        """The checks that a schedule is as it was read: not paused, handled, replaced or registered anew.

        A new registration may have the same version.
        """
        return Check(self._mark(record)), Check(self._path(record.definition.name), version)


def _facts(record: ScheduleRecord) -> dict[str, Any]:
    """The pool and the state of a schedule after a change, for its audit event."""
    definition = record.definition
    return {"pool": definition.pool, "after": {"when": definition.schedule.when, "paused": record.paused}}


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
        except (CorruptSchedule, InvalidName) as error:  # an invalid node must not block the others
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
