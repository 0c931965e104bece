"""The record of a schedule, as its node stores it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from orchestrator.model.act import Act, Word
from orchestrator.model.definition import Definition
from orchestrator.model.errors import CorruptSchedule
from orchestrator.model.fields import explain
from orchestrator.model.plan import Plan
from orchestrator.model.schedule import Schedule
from orchestrator.model.times import from_text, to_text
from orchestrator.schedules.runs import next_fire, run_id
from queues import decode, encode, new_uuid

_MAX_SKIPPED = 20  # for people; more would make the node unreadable
# Omitted from the node while they have no value; an empty `seen` is one.
_LEFT_OUT = ("early", "plan", "registered_by", "changed", "seen", "armed")


class Skipped(BaseModel):
    """One fire time without a run, or several consecutive ones."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    time: str
    until: str | None = None  # the last one of several
    reason: str

    def covers(self, fire: int) -> bool:
        """Whether this fire time is one of them."""
        return from_text(self.time) <= fire <= from_text(self.until or self.time)

    def after(self, schedule: Schedule, fire: int) -> "Skipped | None":
        """The rest of them after the run of `fire` was enqueued and the times before it have passed."""
        if not self.covers(fire):
            return self
        following = next_fire(schedule, fire)
        if following is None or not self.covers(following):
            return None
        until = None if from_text(self.until or self.time) == following else self.until
        return self.model_copy(update={"time": to_text(following), "until": until})


class Armed(BaseModel):
    """The run of a schedule that follows jobs, decided and not yet enqueued."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    time: str  # its fire time
    by: tuple[Word, ...] = ()  # the ids of the jobs whose successes it follows


class ScheduleRecord(BaseModel):
    """A registered schedule, evolved by copy. Times are ISO 8601 in UTC, by the ensemble's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    definition: Definition
    plan: dict[str, Any] | None = None  # of the SQL script of its runs; see `compile_registration`
    # Distinguishes registrations of the same name, because all versions of nodes begin at 0. Older nodes have
    # none.
    registration: str = ""
    paused: bool = False
    registered: str  # when this definition was registered
    handled: str  # all fire times until then have been handled
    last: str | None = None  # the last fire time whose run was enqueued
    early: str | None = None  # runs until then were enqueued too early, by a clock that was ahead
    skipped: tuple[Skipped, ...] = ()  # the last 20
    # With `after`: name -> the last success that counts no more. None: the store fills in the present ones.
    seen: dict[str, Word] | None = None
    armed: Armed | None = None
    registered_by: Word = ""  # the login that ZooKeeper authenticated
    changed: Act | None = None  # last change by an operator

    @field_validator("handled", "last", "early")
    @classmethod
    def _is_time(cls, value: str | None) -> str | None:
        if value is not None:
            from_text(value)
        return value

    @classmethod
    def registered_at(cls, definition: Definition, plan: Plan | None, now: int, act: Act) -> "ScheduleRecord":
        """A new record; fire times before `now` are not its own."""
        at = to_text(now)
        registered = cls(definition=definition, plan=_as_dict(plan), registered=at, handled=at)
        return registered.model_copy(update={"registered_by": act.by, "changed": act}).marked()

    def marked(self) -> "ScheduleRecord":
        """The same record as a new registration."""
        return self.model_copy(update={"registration": new_uuid()})

    @classmethod
    def decode(cls, name: str, path: str, data: bytes) -> "ScheduleRecord":
        """The record in these bytes; raises CorruptSchedule."""
        try:
            record = cls.model_validate(decode(data))
        except ValidationError as error:
            raise CorruptSchedule(name, path, explain(error, cls, "it")) from error
        except ValueError as error:
            raise CorruptSchedule(name, path, str(error)) from error
        try:
            _ = record.next_ms, record.last_run, record.armed_run
        except (ValueError, OverflowError) as error:  # no calendar continues from that time
            raise CorruptSchedule(name, path, f"it has no next fire time: {error}") from error
        if record.definition.name != name:
            raise CorruptSchedule(name, path, f"it holds the definition of {record.definition.name!r}")
        return record

    def encode(self) -> bytes:
        """The bytes of the node, as readable JSON."""
        definition = self.definition.model_dump(mode="json", exclude_defaults=True)
        left_out = {"definition"} | {name for name in _LEFT_OUT if getattr(self, name) in (None, "")}
        return encode({**self.model_dump(mode="json", exclude=left_out), "definition": definition})

    @property
    def handled_ms(self) -> int:
        """The time until which all fire times have been handled, in epoch milliseconds."""
        return from_text(self.handled)

    @property
    def next_ms(self) -> int | None:
        """The next fire time to handle, in epoch milliseconds; None while the schedule is paused."""
        if self.paused:
            return None
        if self.armed is not None:
            return from_text(self.armed.time)
        return next_fire(self.definition.schedule, self.handled_ms)

    @property
    def last_run(self) -> str | None:
        """The id of the run that was enqueued last."""
        return None if self.last is None else run_id(self.definition.name, from_text(self.last))

    @property
    def armed_run(self) -> str | None:
        """The id of the run that is decided and not yet enqueued."""
        return None if self.armed is None else run_id(self.definition.name, from_text(self.armed.time))

    # ------------------------------------------------------------------ changes by the leader
    def arming(self, fire: int, seen: Mapping[str, str], by: Sequence[str]) -> "ScheduleRecord":
        """The record once a run at `fire` is decided: the successes `seen` cause no further one."""
        armed = Armed(time=to_text(fire), by=tuple(by))
        return self.model_copy(update={"armed": armed, "seen": dict(seen)})

    def fired(self, fire: int) -> "ScheduleRecord":
        """The record after the run of this fire time was enqueued."""
        return self.passing(fire).model_copy(update={"last": to_text(fire)})

    def passing(self, fire: int) -> "ScheduleRecord":
        """The record after this fire time was handled."""
        changes: dict[str, object] = {"handled": to_text(fire), "armed": None}
        if self.early is not None:
            changes["early"] = self.early if from_text(self.early) > fire else None
            left = (item.after(self.definition.schedule, fire) for item in self.skipped)
            changes["skipped"] = tuple(item for item in left if item is not None)
        return self.model_copy(update=changes)

    def skipping(self, first: int, last: int, reason: str) -> "ScheduleRecord":
        """The record after the fire times from `first` to `last` were skipped."""
        until = None if last == first else to_text(last)
        passed = self.passing(last)
        skipped = (*passed.skipped, Skipped(time=to_text(first), until=until, reason=reason))
        return passed.model_copy(update={"skipped": skipped[-_MAX_SKIPPED:]})

    # ------------------------------------------------------------------ a clock that was ahead
    def brought_back(self, now: int) -> "ScheduleRecord":
        """The record with the handled time set back to `now`, after a clock that was ahead.

        Fire times that it skipped get their run at their time.
        """
        last = None if self.last is None else from_text(self.last)
        known = 0 if self.early is None else from_text(self.early)
        early = to_text(max(last, known)) if last is not None and max(last, known) > now else None
        return self.model_copy(update={"handled": to_text(now), "early": early})

    def was_early(self, fire: int) -> bool:
        """Whether the run of this fire time was enqueued too early."""
        if self.early is None or fire > from_text(self.early):
            return False
        return not any(item.covers(fire) for item in self.skipped)

    # ------------------------------------------------------------------ changes by operators
    def replaced(self, definition: Definition, plan: Plan | None, now: int, by: str) -> "ScheduleRecord":
        """The record with another definition; a paused one stays paused.

        If the definition has other times, only those after `now` count; likewise the successes of other jobs.
        """
        same = _rule(self.definition.schedule) == _rule(definition.schedule)
        changes: dict[str, object] = {
            "definition": definition,
            "plan": _as_dict(plan),
            "registered": to_text(now),
            "registered_by": by,
        }
        if same:
            return self.model_copy(update=changes)
        changes["early"] = None  # it refers to the old times
        return self._skipping_to(now).model_copy(update=changes)

    def counting_from(self, seen: Mapping[str, str]) -> "ScheduleRecord":
        """The record for which later successes than `seen` count."""
        return self.model_copy(update={"seen": dict(seen)})

    def pausing(self) -> "ScheduleRecord":
        """The paused record."""
        return self.model_copy(update={"paused": True})

    def resumed(self, now: int) -> "ScheduleRecord":
        """The resumed record; fire times and successes during the pause cause no run."""
        return self._skipping_to(now).model_copy(update={"paused": False}) if self.paused else self

    def _skipping_to(self, now: int) -> "ScheduleRecord":
        changes = {"handled": to_text(max(now, self.handled_ms)), "seen": None, "armed": None}
        return self.model_copy(update=changes)


def _rule(schedule: Schedule) -> tuple[object, ...]:
    return schedule.cron, schedule.every, schedule.timezone, frozenset(schedule.after)


def _as_dict(plan: Plan | None) -> dict[str, Any] | None:
    return None if plan is None else dict(plan)
