"""The leader's duty for periodic jobs: enqueues the run of each fire time exactly once."""

from collections.abc import Callable, Mapping, Sequence

from loguru import logger

from orchestrator.admission.same_name import listed
from orchestrator.history.successes import Awaited
from orchestrator.model.errors import DefinitionError
from orchestrator.model.job_view import JobView
from orchestrator.model.times import from_text, to_text
from orchestrator.schedules.known import KnownSchedule, KnownSchedules
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.runs import (
    GRACE_MS,
    MAX_CATCH_UP,
    Due,
    Enqueue,
    due,
    run_definition,
    run_id,
    run_plan,
)
from orchestrator.schedules.store import ScheduleStore
from orchestrator.schedules.triggers import armed, is_complete
from queues import (
    AccessDenied,
    Conflict,
    CorruptRecord,
    IdTaken,
    ItemNotFound,
    Operation,
    OutcomeUnknown,
    QueueError,
    SessionLost,
    TooLarge,
    Unreachable,
)

_LONGEST_SECONDS = 5.0  # until the next step: by then a new schedule is noticed
_FOLLOW_SECONDS = 1.0  # the same while a schedule waits for other jobs: how late it notices their successes
_RETRY_SECONDS = 1.0  # after an error with one schedule
_AHEAD_MS = 10_000  # the clocks of two consecutive leaders differ by less


class Planner:
    """Enqueues runs when they are due. Only the leader steps it, and a second leader does no harm.

    The id of a run contains its fire time, so that it is enqueued once. After that the handled time is
    written into the node of the schedule, by its version. If the leader dies in between, the next one
    enqueues again, and the id is taken. Each multi checks that the node is as it was read, of the same
    registration, and that no other worker was elected since (`fence`). So a leader that was paused or
    replaced neither repeats a run that has ended and been removed since, nor restores an old definition.

    The run after other jobs is decided before: one write stores its fire time and the successes that it
    follows, so that every later leader enqueues this run, and none for the same successes.
    """

    name = "schedules"

    def __init__(
        self,
        store: ScheduleStore,
        *,
        submit: Enqueue,
        get: Callable[[str], JobView],
        fence: Callable[[], tuple[Operation, ...]],
    ) -> None:
        self._store = store
        self._fence = fence
        self._fenced: tuple[Operation, ...] = ()  # as of the beginning of this step
        self._submit = submit
        self._get = get
        self._known = KnownSchedules(store)
        self._found: Mapping[str, Awaited] = {}  # the successes for which schedules wait, as of this step
        self._troubles: dict[str, str] = {}

    def step(self) -> float:
        """Enqueue the runs that are due; returns the seconds until the next one, 5 at most.

        Raises NotLeading, Unreachable, OutcomeUnknown or SessionLost. An error of one schedule is logged, and
        the schedule is retried while the others continue.
        """
        self._fenced = self._fence()
        self._known.refresh()
        self._found = self._successes()
        now, failed = self._store.now_ms(), False
        for known in self._known:
            is_due = known.next_ms is not None and known.next_ms <= now
            if is_due or _is_ahead(known.record, now) or _follows_now(known.record, self._found):
                failed |= not self._try(known, now)
        dues = [known.next_ms for known in self._known if known.next_ms is not None]
        left = (min(dues) - self._store.now_ms()) / 1000 if dues else _LONGEST_SECONDS
        longest = _FOLLOW_SECONDS if self._found else _LONGEST_SECONDS
        return min(max(left, _RETRY_SECONDS if failed else 0.0), longest)

    def _successes(self) -> Mapping[str, Awaited]:
        """The last successes for which schedules wait: read after their records, as the rule requires."""
        awaited = {name for known in self._known for name in known.record.definition.schedule.after}
        if not awaited:
            return {}
        try:
            found = self._store.successes.read(awaited)
        except AccessDenied as error:  # the schedules with fire times do not depend on it
            if self._troubles.get("") != str(error):  # logged once
                logger.error("no schedule follows other jobs: {}", error)
                self._troubles[""] = str(error)
            return {}
        self._troubles.pop("", None)
        for name in awaited - found.keys():
            self._store.successes.ensure(name)
        return found

    def _try(self, known: KnownSchedule, now: int) -> bool:
        name = known.name
        try:
            self._serve(known, now)
        except (Unreachable, OutcomeUnknown, SessionLost):
            raise
        except Conflict:
            # It was paused, replaced or removed, or another worker leads. A folder may be missing, too.
            again = self._known.read(name)
            return again is None or again.version != known.version
        except Exception as error:  # noqa: BLE001 - an error of one schedule must not stop the others
            if self._troubles.get(name) != str(error):  # logged once: a full pool may stay full for hours
                trace = None if isinstance(error, QueueError) else error
                logger.opt(exception=trace).warning("schedule {}: {}; it is retried", name, error)
                self._troubles[name] = str(error)
            return False
        self._troubles.pop(name, None)
        return True

    def _serve(self, known: KnownSchedule, now: int) -> None:
        if _is_ahead(known.record, now):
            words = "schedule {}: a clock that was ahead has handled it until {}; it continues from now"
            logger.warning(words, known.name, known.record.handled)
            self._write(known, known.record.brought_back(now))
            return
        if not known.record.registration:
            known = self._write(known, known.record)
        if known.record.definition.schedule.after:
            self._follow(known, now)
            return
        while (due_now := _due(known.record, now)).missed is not None:
            known = self._write(known, self._missed(known.record, due_now.missed, left=len(due_now.times)))
        for fire in due_now.times:
            known = self._write(known, self._handled(known, fire))

    def _follow(self, known: KnownSchedule, now: int) -> None:
        """Enqueue the run after other jobs: decided by one write, and enqueued under the id in it."""
        record = known.record
        if record.armed is None:
            if record.definition.schedule.overlap == "skip" and self._unended(record):
                return  # the successes go on counting until it has ended
            decided = armed(record, self._found, now)
            if decided is None:
                return
            # The checks: a new session may have read from a server that is behind.
            found = {name: self._found[name] for name in record.definition.schedule.after}
            known = self._write(known, decided, self._store.successes.unchanged(found))
        if known.record.armed is not None:
            self._write(known, self._handled(known, from_text(known.record.armed.time)))

    def _unended(self, record: ScheduleRecord) -> str:
        """The id of the last run if it has not ended, else an empty text."""
        return "" if record.last_run is None or not self._runs(record.last_run) else record.last_run

    def _write(
        self, known: KnownSchedule, record: ScheduleRecord, checks: Sequence[Operation] = ()
    ) -> KnownSchedule:
        return self._known.store(*self._store.write(record, known.version, [*self._fenced, *checks]))

    def _missed(self, record: ScheduleRecord, missed: tuple[int, int], *, left: int) -> ScheduleRecord:
        first, last = missed
        name, catch_up = record.definition.name, record.definition.schedule.catch_up
        if self._job(run_id(name, first)) is not None:
            return record.fired(first)  # the leader before died between the put and the write
        reason = (
            f"no leader enqueued it in time, and only the last {MAX_CATCH_UP} missed runs are caught up"
            if catch_up
            else f"no leader enqueued it within {GRACE_MS // 1000} s, and catch_up is false"
        )
        logger.warning(
            "schedule {}: no run for the fire times from {} to {}: {}; {} are enqueued now",
            name,
            to_text(first),
            to_text(last),
            reason,
            left,
        )
        return record.skipping(first, last, reason)

    def _handled(self, known: KnownSchedule, fire: int) -> ScheduleRecord:
        record = known.record
        definition, job_id = record.definition, run_id(known.name, fire)
        if record.was_early(fire):
            return record.passing(fire)
        before = self._unended(record)
        if before and definition.schedule.overlap == "skip" and record.armed is None:
            words = "schedule {}: {} is skipped, {} has not ended (overlap: skip)"
            logger.info(words, known.name, job_id, before)
            return record.skipping(fire, fire, f"{before} had not ended (overlap: skip)")
        try:
            self._submit(
                run_definition(definition, fire),
                run_plan(definition, record.plan, fire),
                job_id=job_id,
                extra_operations=[*self._fenced, *self._store.unchanged(record, known.version)],
                origin=_origin(record, before),
            )
        except IdTaken:
            pass  # the leader before, or another one at the same time, has enqueued it
        except (DefinitionError, TooLarge) as error:
            logger.error("schedule {}: {} cannot be enqueued: {}", known.name, job_id, error)
            return record.skipping(fire, fire, f"it could not be enqueued: {error}"[:500])
        else:
            beside = f"; {before} has not ended (overlap: queue)" if before else ""
            logger.info("schedule {}: enqueued {}{}", known.name, job_id, beside)
        return record.fired(fire)

    def _runs(self, job_id: str) -> bool:
        """Whether a run has not ended."""
        job = self._job(job_id)
        return job is not None and not job.is_final

    def _job(self, job_id: str) -> JobView | None:
        """The job with this id; None if there is none, or if it is corrupt and will move to dead."""
        try:
            return self._get(job_id)
        except (ItemNotFound, CorruptRecord):
            return None


def _origin(record: ScheduleRecord, before: str) -> str:
    """On whose behalf a run is enqueued, and by which rule, if the run `before` has not ended."""
    by = f", registered by {record.registered_by}" if record.registered_by else ""
    after = "" if record.armed is None else f", after {listed(record.armed.by)}"
    rule = f"; {before} had not ended (overlap: queue)" if before else ""
    return f"schedule {record.definition.name}{by}{after}{rule}"


def _is_ahead(record: ScheduleRecord, now: int) -> bool:
    return not record.definition.schedule.after and record.handled_ms > now + _AHEAD_MS


def _follows_now(record: ScheduleRecord, found: Mapping[str, Awaited]) -> bool:
    """Whether a schedule that follows other jobs has a run to enqueue."""
    if record.paused or not record.definition.schedule.after:
        return False
    return record.armed is not None or is_complete(record, found)


def _due(record: ScheduleRecord, now: int) -> Due:
    return due(record.definition.schedule, record.handled_ms, now)
