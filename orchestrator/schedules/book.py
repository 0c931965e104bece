"""The nodes in which schedules are registered: what people and programs do with them, by name."""

from collections.abc import Callable, Sequence

from orchestrator.audit.trail import Trail
from orchestrator.errors import CorruptSchedule, ScheduleNotFound
from orchestrator.models.act import Act
from orchestrator.models.definition import Definition
from orchestrator.nodes import Nodes
from orchestrator.schedules.entry import Entry, ScheduleView
from orchestrator.schedules.runs import compile_registration
from queues.errors import Conflict, InvalidName
from queues.names import check_id
from queues.operations import Check, Create, Delete, Operation, Set
from queues.session import Session
from queues.transaction import commit


class Book:
    """All schedules below one root. Safe to use from several threads.

    `now_ms`: epoch milliseconds of the ensemble, `QueueSet.clock.now_ms`.
    """

    def __init__(self, session: Session, nodes: Nodes, now_ms: Callable[[], int]) -> None:
        self.session = session
        self.nodes = nodes
        self.now_ms = now_ms
        self._trail = Trail(session, nodes)

    def list(self) -> "tuple[ScheduleView, ...]":
        """All schedules by name; one that cannot be read is among them with the reason."""
        names = sorted(self.session.children(self.nodes.schedules) or [])
        views, paths = list[ScheduleView](), [self.nodes.schedule(name) for name in names]
        for name, path, found in zip(names, paths, self.session.get_many(paths), strict=True):
            if found is None:
                continue  # removed meanwhile
            try:
                views.append(self._view(Entry.decode(name, self._path(name), found[0])))
            except (CorruptSchedule, InvalidName) as error:
                views.append(ScheduleView.unreadable(name, path, str(error)))
        return tuple(views)

    def get(self, name: str) -> ScheduleView:
        """One schedule; raises ScheduleNotFound, CorruptSchedule."""
        return self._view(self._read(name)[0])

    def put(self, definition: Definition) -> ScheduleView:
        """Register a definition with a schedule, or replace that of the same name: it stays paused if it was.

        Raises DefinitionError or SqlError for what could not be run, CorruptSchedule.
        """
        plan = compile_registration(definition)
        name, now, act = definition.name, self.now_ms(), self._trail.act("register")
        while True:
            try:
                return self._change(name, act, lambda entry: entry.replaced(definition, plan, now, act.by))
            except ScheduleNotFound:
                entry = Entry.registered_at(definition, plan, now, act)
            self.session.ensure_path(self.nodes.schedules)
            try:
                made = [Create(self._path(name), entry.encode()), Create(self._mark(entry))]
                commit(self.session, [*made, self._record(act, entry)])
            except Conflict:
                continue  # somebody else was faster, or it was our own lost reply: replace that
            return self._view(entry)

    def pause(self, name: str) -> ScheduleView:
        """Enqueue no further run, from this moment on; raises ScheduleNotFound, CorruptSchedule."""
        return self._change(name, self._trail.act("pause"), Entry.pausing)

    def resume(self, name: str) -> ScheduleView:
        """Enqueue runs again, for the fire times from now on; raises ScheduleNotFound, CorruptSchedule."""
        now = self.now_ms()
        return self._change(name, self._trail.act("resume"), lambda entry: entry.resumed(now))

    def remove(self, name: str) -> None:
        """Forget a schedule; its runs stay. Raises ScheduleNotFound."""
        path, act = self._path(name), self._trail.act("remove")
        while (marks := self.session.children(path)) is not None:
            try:
                gone = [*(Delete(f"{path}/{mark}") for mark in marks), Delete(path)]
                commit(self.session, [*gone, self._trail.entry(act, "schedule", name)])
            except Conflict as conflict:
                # Our own lost reply, else it was registered anew in this moment.
                if not conflict.ambiguous or conflict.reason == "NotEmpty":
                    continue
            return
        raise ScheduleNotFound(name)

    def _view(self, entry: Entry) -> ScheduleView:
        return ScheduleView.of(entry, self._path(entry.definition.name), self.now_ms())

    def _path(self, name: str) -> str:
        return self.nodes.schedule(check_id(name))  # a name of a job is one of an id: see Definition

    def _mark(self, entry: Entry) -> str:
        return f"{self._path(entry.definition.name)}/{entry.registration}"

    def _record(self, act: Act, entry: Entry) -> Create:
        schedule = entry.definition.schedule
        pool, facts = entry.definition.pool, {"when": schedule.when, "paused": entry.paused}
        return self._trail.entry(act, "schedule", entry.definition.name, pool=pool, after=facts)

    def _change(self, name: str, act: Act, change: Callable[[Entry], Entry]) -> ScheduleView:
        while True:
            before, version = self._read(name)
            after = change(before)
            if after != before:
                after = after.model_copy(update={"changed": act})
                try:
                    self.write(after, version, riders=[self._record(act, after)])
                except Conflict:
                    continue  # the leader, or somebody else, has changed it meanwhile: theirs and ours
            return self._view(after)

    # ------------------------------------------------------------------ what the leader needs
    def _read(self, name: str) -> tuple[Entry, int]:
        found = self.read(name)
        if found is None:
            raise ScheduleNotFound(name)
        return found

    def read(self, name: str, wake: Callable[[], None] | None = None) -> tuple[Entry, int] | None:
        """The entry and its version, None where there is none; `wake` is called once when it changes.

        Raises CorruptSchedule.
        """
        path = self._path(name)
        found = self.session.get(path, wake, await_creation=False)
        return None if found is None else (Entry.decode(name, path, found[0]), found[1].version)

    def write(
        self,
        entry: Entry,
        version: int,
        fence: Sequence[Operation] = (),
        riders: Sequence[Operation] = (),
    ) -> tuple[Entry, int]:
        """Set an entry that was read at this version; returns it with the new one. Raises Conflict.

        `fence`: what else has to be so; `riders`: what else is done.
        """
        written = entry if entry.registration else entry.marked()
        mark = Check(self._mark(entry)) if written is entry else Create(self._mark(written))
        path = self._path(entry.definition.name)
        commit(self.session, [*fence, mark, Set(path, written.encode(), version), *riders])
        return written, version + 1

    def unchanged(self, entry: Entry, version: int) -> tuple[Operation, ...]:
        """Lets a multi be done only if the schedule is as it was read: not paused, handled or replaced.

        Not registered anew either, whose version may be the same.
        """
        return Check(self._mark(entry)), Check(self._path(entry.definition.name), version)
