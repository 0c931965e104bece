"""The store of schedules in ZooKeeper."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from orchestrator.audit.trail import Trail
from orchestrator.connections.store import ConnectionStore
from orchestrator.history.successes import Awaited, Successes
from orchestrator.model.definition import Definition, checked
from orchestrator.model.errors import CorruptSchedule, DefinitionError, ScheduleNotFound
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from orchestrator.model.readable_nodes import readable_nodes
from orchestrator.model.times import to_text
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.runs import compile_registration
from orchestrator.schedules.triggers import circle_of
from orchestrator.schedules.view import ManualRun, ScheduleView
from queues import (
    AccessDenied,
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
        self.successes = Successes(session, nodes)
        self._trail = Trail(session, nodes)

    def list(self) -> "tuple[ScheduleView, ...]":
        """All schedules by name, with their last runs; an unreadable one is included with the reason."""
        found = self.records()
        readable = [record for record in found.values() if isinstance(record, ScheduleRecord)]
        views = {view.name: view for view in self._views(readable)}
        return tuple(
            views[name]
            if isinstance(record, ScheduleRecord)
            else ScheduleView.unreadable(name, self.nodes.schedule(name), str(record))
            for name, record in found.items()
        )

    def get(self, name: str) -> ScheduleView:
        """One schedule, with its last run; raises ScheduleNotFound, CorruptSchedule."""
        return self._views([self._read(name)[0]])[0]

    def records(self) -> Mapping[str, ScheduleRecord | CorruptSchedule | InvalidName]:
        """The record of each schedule, or why it cannot be read, by name; raises the errors of reads."""
        names = sorted(self.session.children(self.nodes.schedules) or [])
        paths = [self.nodes.schedule(name) for name in names]
        records = dict[str, ScheduleRecord | CorruptSchedule | InvalidName]()
        for name, found in zip(names, readable_nodes(self.session, paths), strict=True):
            if found is None:
                continue  # removed since
            if isinstance(found, AccessDenied):
                records[name] = CorruptSchedule(name, self.nodes.schedule(name), str(found))
                continue
            try:
                records[name] = ScheduleRecord.decode(name, self._path(name), found[0])
            except (CorruptSchedule, InvalidName) as error:
                records[name] = error
        return records

    def jobs(self, ids: Collection[str]) -> Mapping[str, JobView | None]:
        """The jobs with these ids; None for one whose record cannot be read. Raises the errors of reads."""
        layout, jobs = Layout(self.nodes.root), dict[str, JobView | None]()
        found = self.session.get_many([layout.record(job_id) for job_id in ids])
        for job_id, node in zip(ids, found, strict=True):
            if node is not None:
                try:
                    jobs[job_id] = JobView.of(Record.decode(job_id, node[0]))
                except CorruptRecord:  # it will move to dead
                    jobs[job_id] = None
        return jobs

    def _views(self, records: Sequence[ScheduleRecord]) -> Sequence[ScheduleView]:
        """The views of schedules, with three reads for all of them together."""
        manual = self._manual_runs(records)
        last = [record.last_run for record in records if record.last_run is not None]
        jobs = self.jobs({*last, *(run.id for run in manual.values())})
        found = self.successes.read({name for record in records for name in record.definition.schedule.after})
        return [
            self._view(record, found).with_runs(jobs, manual.get(record.definition.name))
            for record in records
        ]

    def _manual_runs(self, records: Sequence[ScheduleRecord]) -> Mapping[str, ManualRun]:
        """The last run that an operator asked for, by name; a node that cannot be read counts as none."""
        marked = [record for record in records if record.registration]
        found = self.session.get_many([self._mark(record) for record in marked])
        runs = {
            record.definition.name: ManualRun.read(node[0])
            for record, node in zip(marked, found, strict=True)
            if node is not None
        }
        return {name: run for name, run in runs.items() if run is not None}

    def note_manual(self, record: ScheduleRecord, job_id: str, at: int) -> tuple[Operation, ...]:
        """The operation that makes a job the last run that an operator asked for."""
        if not record.registration:  # of an older version, until a leader has served it
            return ()
        return (Set(self._mark(record), ManualRun(id=job_id, at=to_text(at)).encode(), -1),)

    def still(self, record: ScheduleRecord) -> tuple[Operation, ...]:
        """The check that the schedule was not removed, or registered anew."""
        return (Check(self._mark(record)),) if record.registration else ()  # likewise

    def put(self, definition: Definition) -> ScheduleView:
        """Register a definition with a schedule, or replace the one of its name; a paused one stays paused.

        Raises CorruptSchedule, and DefinitionError or SqlError for a definition that cannot run, or that
        waits for itself by way of other schedules.
        """
        definition = checked(definition)
        plan = compile_registration(definition, ConnectionStore(self.session, self.nodes).find)
        name, now, act = definition.name, self.now_ms(), self._trail.act("register")
        if (circle := circle_of(name, definition.schedule.after, self._awaited_by)) is not None:
            raise DefinitionError(
                f"'schedule.after' of {name!r} leads back to itself: {' after '.join(circle)}; "
                "change one of these schedules"
            )
        while True:
            try:
                return self._change(
                    name, act.action, lambda record: record.replaced(definition, plan, now, act.by)
                )
            except ScheduleNotFound:
                record, awaiting = self._awaiting(ScheduleRecord.registered_at(definition, plan, now, act))
            self.session.ensure_path(self.nodes.schedules)
            try:
                made = [Create(self._path(name), record.encode()), Create(self._mark(record)), *awaiting]
                commit(self.session, [*made, self._trail.entry(act, "schedule", name, **_facts(record))])
            except Conflict:
                continue  # another client was faster, or the reply to this multi was lost: replace it
            return self._view(record, {})

    def _awaited_by(self, name: str) -> Sequence[str]:
        try:
            found = self.read(name)
        except CorruptSchedule:
            found = None
        return () if found is None else found[0].definition.schedule.after

    def _awaiting(self, record: ScheduleRecord) -> tuple[ScheduleRecord, Sequence[Operation]]:
        """The record from which on only new successes count, if it has forgotten the old ones.

        The operations make sure that workers report them; they are refused if there was one in between.
        """
        if record.seen is not None or not record.definition.schedule.after:
            return record, ()
        found, operations = self.successes.await_names(record.definition.schedule.after)
        seen = {name: each.success.run for name, each in found.items() if each.success is not None}
        return record.counting_from(seen), operations

    def pause(self, name: str) -> ScheduleView:
        """Stop enqueueing runs; raises ScheduleNotFound, CorruptSchedule."""
        return self._change(name, "pause", ScheduleRecord.pausing)

    def resume(self, name: str) -> ScheduleView:
        """Enqueue runs again, for fire times and successes after now.

        Raises ScheduleNotFound, CorruptSchedule.
        """
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
        raise ScheduleNotFound(name, self.session.children(self.nodes.schedules) or ())

    def _view(self, record: ScheduleRecord, found: Mapping[str, Awaited]) -> ScheduleView:
        return ScheduleView.of(record, self._path(record.definition.name), self.now_ms(), found)

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
                after, awaiting = self._awaiting(after.model_copy(update={"changed": act}))
                event = self._trail.entry(act, "schedule", name, **_facts(after))
                try:
                    self.write(after, version, extra_operations=[event, *awaiting])
                except Conflict:
                    continue  # the leader or another client has changed it since: apply the change to that
            return self._view(after, {})

    # ------------------------------------------------------------------ for the leader
    def _read(self, name: str) -> tuple[ScheduleRecord, int]:
        found = self.read(name)
        if found is None:
            raise ScheduleNotFound(name, self.session.children(self.nodes.schedules) or ())
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
