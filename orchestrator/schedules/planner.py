"""The leader's duty for periodic jobs: enqueue the run of each fire time, exactly once."""

from collections.abc import Callable, Sequence
from typing import Protocol

from loguru import logger

from orchestrator.errors import DefinitionError
from orchestrator.models.definition import Definition
from orchestrator.models.job import JobView
from orchestrator.plan import Plan
from orchestrator.schedules.book import Book
from orchestrator.schedules.entry import Entry
from orchestrator.schedules.fires import GRACE_MS, MAX_CATCH_UP, Due, due, to_text
from orchestrator.schedules.known import Known, KnownSchedules
from orchestrator.schedules.runs import run_definition, run_id, run_plan
from queues.errors import (
    Conflict,
    CorruptRecord,
    IdTaken,
    ItemNotFound,
    OutcomeUnknown,
    QueueError,
    SessionLost,
    TooLarge,
    Unreachable,
)
from queues.operations import Operation

_LONGEST_SECONDS = 5.0  # until the next step: a new schedule is seen by then
_RETRY_SECONDS = 1.0  # after something could not be done for one schedule
_AHEAD_MS = 10_000  # the clocks of two who lead one after the other differ by less


class Submit(Protocol):
    """Enqueues a job, as `Client.enqueue` does."""

    def __call__(
        self,
        definition: Definition,
        plan: Plan | None,
        *,
        job_id: str,
        riders: Sequence[Operation],
        origin: str,
    ) -> object:
        """Raises IdTaken when a job has the id, Conflict when a rider is refused."""


class Planner:
    """Enqueues runs when they are due. To be stepped by the leader alone, and right when two think they lead.

    The id of a run is made of its fire time, so that it can be put once. What has been dealt with is written
    into the node of the schedule after that, by its version; who ends in between leaves a put that is done
    again, in vain. And nothing is put or written unless the node still is as it was read, of the same
    registration, and nobody was elected since (`fence`): who was paused, or leads no more, repeats no run
    that has ended and been removed meanwhile, and brings no definition back.
    """

    name = "schedules"

    def __init__(
        self,
        book: Book,
        *,
        submit: Submit,
        get: Callable[[str], JobView],
        fence: Callable[[], tuple[Operation, ...]],
    ) -> None:
        self._book = book
        self._fence = fence
        self._fenced: tuple[Operation, ...] = ()  # as it was before this step looked at anything
        self._submit = submit
        self._get = get
        self._known = KnownSchedules(book)
        self._troubles: dict[str, str] = {}

    def step(self) -> float:
        """Do what is due; returns the seconds until something is, 5 at most.

        Raises NotLeading, Unreachable, OutcomeUnknown or SessionLost; what fails for one schedule is told in
        the log, and tried again while the others go on.
        """
        self._fenced = self._fence()
        self._known.refresh()
        now, failed = self._book.now_ms(), False
        for known in self._known:
            is_due = known.next_ms is not None and known.next_ms <= now
            if is_due or _is_ahead(known.entry, now):
                failed |= not self._try(known, now)
        dues = [known.next_ms for known in self._known if known.next_ms is not None]
        left = (min(dues) - self._book.now_ms()) / 1000 if dues else _LONGEST_SECONDS
        return min(max(left, _RETRY_SECONDS if failed else 0.0), _LONGEST_SECONDS)

    def _try(self, known: Known, now: int) -> bool:
        name = known.name
        try:
            self._serve(known, now)
        except (Unreachable, OutcomeUnknown, SessionLost):
            raise
        except Conflict:
            # Somebody has paused, replaced or removed it, or leads as well. A folder may be missing, too.
            again = self._known.read(name)
            return again is None or again.version != known.version
        except Exception as error:  # noqa: BLE001 - what is wrong with one schedule must not stop the others
            if self._troubles.get(name) != str(error):  # told once: a full pool may stay full for hours
                trace = None if isinstance(error, QueueError) else error
                logger.opt(exception=trace).warning("schedule {}: {}; it is tried again", name, error)
                self._troubles[name] = str(error)
            return False
        self._troubles.pop(name, None)
        return True

    def _serve(self, known: Known, now: int) -> None:
        if _is_ahead(known.entry, now):
            words = "schedule {}: it was dealt with until {}, by a clock that was ahead; it goes on from now"
            logger.warning(words, known.name, known.entry.handled)
            self._note(known, known.entry.brought_back(now))
            return
        if not known.entry.registration:
            known = self._note(known, known.entry)
        while (todo := _due(known.entry, now)).missed is not None:
            known = self._note(known, self._missed(known.entry, todo.missed, left=len(todo.times)))
        for fire in todo.times:
            known = self._note(known, self._handled(known, fire))

    def _note(self, known: Known, entry: Entry) -> Known:
        return self._known.note(*self._book.write(entry, known.version, self._fenced))

    def _missed(self, entry: Entry, missed: tuple[int, int], *, left: int) -> Entry:
        first, last = missed
        name, catch_up = entry.definition.name, entry.definition.schedule.catch_up
        if self._job(run_id(name, first)) is not None:
            return entry.fired(first)  # who led before ended when it had put the run, and before it wrote so
        reason = (
            f"nobody enqueued it in time; of all that were missed the last {MAX_CATCH_UP} are made up for"
            if catch_up
            else f"nobody enqueued it within {GRACE_MS // 1000} s, and catch_up is false"
        )
        logger.warning(
            "schedule {}: no run for the fire times from {} to {}: {}; {} are enqueued now",
            name,
            to_text(first),
            to_text(last),
            reason,
            left,
        )
        return entry.skipping(first, last, reason)

    def _handled(self, known: Known, fire: int) -> Entry:
        entry = known.entry
        definition, job_id = entry.definition, run_id(known.name, fire)
        if entry.was_early(fire):
            return entry.passing(fire)
        if definition.schedule.overlap == "skip" and entry.last_run is not None:
            before = self._job(entry.last_run)
            if before is not None and not before.is_final:
                logger.info("schedule {}: {} is skipped, {} has not ended", known.name, job_id, before.id)
                return entry.skipping(fire, fire, f"{before.id} had not ended (overlap: skip)")
        try:
            self._submit(
                run_definition(definition, fire),
                run_plan(definition, entry.plan, fire),
                job_id=job_id,
                riders=[*self._fenced, *self._book.unchanged(entry, known.version)],
                origin=_origin(entry),
            )
        except IdTaken:
            pass  # by whoever led before, or leads as well: that is what was wanted
        except (DefinitionError, TooLarge) as error:
            logger.error("schedule {}: {} cannot be enqueued: {}", known.name, job_id, error)
            return entry.skipping(fire, fire, f"it could not be enqueued: {error}"[:500])
        else:
            logger.info("schedule {}: enqueued {}", known.name, job_id)
        return entry.fired(fire)

    def _job(self, job_id: str) -> JobView | None:
        """The job of this id; None when there is none, or it is corrupt and will be buried."""
        try:
            return self._get(job_id)
        except (ItemNotFound, CorruptRecord):
            return None


def _origin(entry: Entry) -> str:
    by = f", registered by {entry.registered_by}" if entry.registered_by else ""
    return f"schedule {entry.definition.name}{by}"


def _is_ahead(entry: Entry, now: int) -> bool:
    return entry.handled_ms > now + _AHEAD_MS


def _due(entry: Entry, now: int) -> Due:
    return due(entry.definition.schedule, entry.handled_ms, now)
