"""All that clients do with schedules: the store, runs that an operator asks for, and backfills."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice, takewhile

from orchestrator.model.errors import DefinitionError, StateConflict
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from orchestrator.model.times import to_text
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.runs import Enqueue, fires, manual_id, run_definition, run_id, run_plan
from orchestrator.schedules.store import ScheduleStore
from orchestrator.schedules.view import UNREADABLE
from queues import Conflict, IdTaken, Operation, Session

MAX_BACKFILL = 10_000  # fire times at once: as many as a pool takes by default
_SECOND_MS = 1000
_MANUAL_IDS = 60  # further ids that one request tries: other requests have taken those of the same second


@dataclass(frozen=True, slots=True)
class BackfillRun:
    """The run of one fire time of a backfill."""

    id: str
    fire_time: str  # ISO 8601 in UTC
    status: str | None  # of the job that has the id; None without one: it is enqueued
    enqueued: bool = False  # by this backfill


class Schedules(ScheduleStore):
    """The schedules of one orchestrator. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes, now_ms: Callable[[], int], enqueue: Enqueue) -> None:
        super().__init__(session, nodes, now_ms)
        self._enqueue = enqueue

    def run(self, name: str) -> JobView:
        """Enqueue one run now, also of a paused schedule, and whatever its other runs do.

        Its fire time is now, in whole seconds; the schedule does not count it as a run of its own. Raises
        ScheduleNotFound, CorruptSchedule, DefinitionError, QueueFull.
        """
        now = self.now_ms()
        second = now - now % _SECOND_MS
        for number in count():
            record, job_id = self._read(name)[0], manual_id(name, second + number * _SECOND_MS)
            try:
                return self._put(
                    record, second, job_id, "run now", noted=self.note_manual(record, job_id, second)
                )
            except (IdTaken, Conflict):  # of the same second; or it was registered anew just now
                if number == _MANUAL_IDS:
                    raise
        raise AssertionError("unreachable")

    def backfill_runs(self, name: str, start: int, end: int) -> Sequence[BackfillRun]:
        """The runs of all fire times from `start` until before `end`, in epoch ms, as they are now.

        Raises ScheduleNotFound, CorruptSchedule, and DefinitionError for times that cannot be filled.
        """
        return self._backfill_runs(self._read(name)[0], start, end)

    def backfill(
        self,
        name: str,
        start: int,
        end: int,
        *,
        parallel: int = 0,
        on_run: Callable[[BackfillRun], object] = lambda _run: None,
    ) -> Sequence[BackfillRun]:
        """Enqueue the runs of these fire times that have no job, oldest first; returns all of them.

        The ids are those of the fire times: what a backfill has enqueued before it was interrupted, it does
        not enqueue again. A job that was removed after its retention runs again. `parallel`: the most running
        jobs of the name beside which such a run starts, 0 = as the definition says. `on_run` is called after
        each. It ends when the schedule is removed. Raises what `backfill_runs` raises, QueueFull, and
        StateConflict if the schedule was removed and registered again meanwhile.
        """
        record = self._read(name)[0]
        return [
            self._fill(record, run, fire, parallel, on_run)
            for run, fire in zip(
                self._backfill_runs(record, start, end), _fires(record, start, end), strict=True
            )
        ]

    def _backfill_runs(self, record: ScheduleRecord, start: int, end: int) -> Sequence[BackfillRun]:
        self._check_range(record, start, end)
        name = record.definition.name
        times = {run_id(name, fire): fire for fire in _fires(record, start, end)}
        if len(times) > MAX_BACKFILL:
            raise DefinitionError(
                f"there are more than {MAX_BACKFILL:,} fire times of {name!r} from {to_text(start)} to "
                f"{to_text(end)}: fill shorter times one after the other"
            )
        jobs = self.jobs(times)
        return [
            BackfillRun(job_id, to_text(fire), _status(jobs[job_id]) if job_id in jobs else None)
            for job_id, fire in times.items()
        ]

    def _check_range(self, record: ScheduleRecord, start: int, end: int) -> None:
        name, now = record.definition.name, self.now_ms()
        if record.definition.schedule.after:
            raise DefinitionError(
                f"{name!r} follows other jobs and has no fire times to fill; `schedule run` runs it once"
            )
        if start >= end or start < 0:
            raise DefinitionError("the times end before they begin, or begin before 1970")
        if end > now:
            raise DefinitionError(
                f"the times end in the future: it is {to_text(now)}, and the schedule enqueues later runs "
                "itself"
            )

    def _fill(
        self,
        record: ScheduleRecord,
        run: BackfillRun,
        fire: int,
        parallel: int,
        on_run: Callable[[BackfillRun], object],
    ) -> BackfillRun:
        if run.status is None:
            try:
                job = self._put(record, fire, run.id, "backfill", parallel=parallel, noted=self.still(record))
                run = BackfillRun(run.id, run.fire_time, job.status.value, enqueued=True)
            except IdTaken:  # the schedule itself, or another backfill, was faster
                run = BackfillRun(run.id, run.fire_time, _status(self.jobs([run.id]).get(run.id)))
            except Conflict as error:
                name = record.definition.name
                if self._read(name)[0].registration == record.registration:
                    raise
                raise StateConflict(
                    f"the schedule {name!r} was registered anew; repeat the backfill"
                ) from error
        on_run(run)
        return run

    def _put(
        self,
        record: ScheduleRecord,
        fire: int,
        job_id: str,
        why: str,
        *,
        parallel: int = 0,
        noted: Sequence[Operation] = (),
    ) -> JobView:
        definition = run_definition(record.definition, fire)
        if parallel:
            limits = {parallel, definition.concurrency} - {0}
            definition = definition.model_copy(update={"concurrency": min(limits)})
        plan = run_plan(record.definition, record.plan, fire)
        return self._enqueue(
            definition,
            plan,
            job_id=job_id,
            extra_operations=noted,
            origin=f"schedule {record.definition.name}, {why}",
        )


def _fires(record: ScheduleRecord, start: int, end: int) -> Iterator[int]:
    """The fire times from `start` until before `end`, one more than are filled at most."""
    times = (fire for fire in fires(record.definition.schedule, start - _SECOND_MS) if fire >= start)
    return islice(takewhile(lambda fire: fire < end, times), MAX_BACKFILL + 1)


def _status(job: JobView | None) -> str:
    return UNREADABLE if job is None else job.status.value
