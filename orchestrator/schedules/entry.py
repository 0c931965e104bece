"""What the node of a schedule holds, and the view of it for people."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from orchestrator.errors import CorruptSchedule
from orchestrator.models.act import Act, Word
from orchestrator.models.definition import Definition
from orchestrator.models.fields import explain
from orchestrator.models.schedule import Schedule
from orchestrator.plan import Plan
from orchestrator.schedules.fires import from_text, next_fire, to_text
from orchestrator.schedules.runs import run_id
from queues.documents import decode, encode, new_uuid

_MAX_SKIPPED = 20  # told for people; the node stays readable


_LEFT_OUT = ("early", "plan", "registered_by", "changed")  # of the node, where there is nothing


class Skipped(BaseModel):
    """A fire time without a run, or several in a row."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    time: str
    until: str | None = None  # the last of them, where there are several
    reason: str

    def covers(self, fire: int) -> bool:
        """Whether this fire time is one of them."""
        return from_text(self.time) <= fire <= from_text(self.until or self.time)

    def after(self, schedule: Schedule, fire: int) -> "Skipped | None":
        """What is left of them when one has got its run, and those before it have had their time."""
        if not self.covers(fire):
            return self
        following = next_fire(schedule, fire)
        if following is None or not self.covers(following):
            return None
        until = None if from_text(self.until or self.time) == following else self.until
        return self.model_copy(update={"time": to_text(following), "until": until})


class Entry(BaseModel):
    """A registered schedule. It evolves by copy; times are ISO 8601 in UTC, by the ensemble's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    definition: Definition
    plan: dict[str, Any] | None = None  # of the SQL script of its runs; see `compile_registration`
    # Which of those that had this name it is: all versions of nodes begin at 0. Older nodes have none.
    registration: str = ""
    paused: bool = False
    registered: str  # when this definition came
    handled: str  # all fire times until then have been dealt with
    last: str | None = None  # the last fire time whose run was enqueued
    early: str | None = None  # runs until then were enqueued before their time, by a clock that was ahead
    skipped: tuple[Skipped, ...] = ()  # the last ones
    registered_by: Word = ""  # the login that ZooKeeper has seen
    changed: Act | None = None  # what an operator did last

    @field_validator("handled", "last", "early")
    @classmethod
    def _is_time(cls, value: str | None) -> str | None:
        if value is not None:
            from_text(value)
        return value

    @classmethod
    def registered_at(cls, definition: Definition, plan: Plan | None, now: int, act: Act) -> "Entry":
        """A new one: the fire times before now are none of its business."""
        at = to_text(now)
        registered = cls(definition=definition, plan=_own(plan), registered=at, handled=at)
        return registered.model_copy(update={"registered_by": act.by, "changed": act}).marked()

    def marked(self) -> "Entry":
        """The same as a registration of its own."""
        return self.model_copy(update={"registration": new_uuid()})

    @classmethod
    def decode(cls, name: str, path: str, data: bytes) -> "Entry":
        """The entry in these bytes; raises CorruptSchedule."""
        try:
            entry = cls.model_validate(decode(data))
        except ValidationError as error:
            raise CorruptSchedule(name, path, explain(error, cls, "it")) from error
        except ValueError as error:
            raise CorruptSchedule(name, path, str(error)) from error
        try:
            _ = entry.next_ms, entry.last_run
        except (ValueError, OverflowError) as error:  # a time that no calendar goes on from
            raise CorruptSchedule(name, path, f"it has no next fire time: {error}") from error
        if entry.definition.name != name:
            raise CorruptSchedule(name, path, f"it holds the definition of {entry.definition.name!r}")
        return entry

    def encode(self) -> bytes:
        """The bytes of the node: JSON that a person can read."""
        definition = self.definition.model_dump(mode="json", exclude_defaults=True)
        left_out = {"definition"} | {name for name in _LEFT_OUT if not getattr(self, name)}
        return encode({**self.model_dump(mode="json", exclude=left_out), "definition": definition})

    @property
    def handled_ms(self) -> int:
        """Until when all fire times have been dealt with, in epoch milliseconds."""
        return from_text(self.handled)

    @property
    def next_ms(self) -> int | None:
        """The next fire time that has to be dealt with; None while it is paused."""
        return None if self.paused else next_fire(self.definition.schedule, self.handled_ms)

    @property
    def last_run(self) -> str | None:
        """The id of the run that was enqueued last."""
        return None if self.last is None else run_id(self.definition.name, from_text(self.last))

    # ------------------------------------------------------------------ what the leader did
    def fired(self, fire: int) -> "Entry":
        """The run of this fire time is enqueued."""
        return self.passing(fire).model_copy(update={"last": to_text(fire)})

    def passing(self, fire: int) -> "Entry":
        """Nothing is to be done for this fire time any more."""
        changes: dict[str, object] = {"handled": to_text(fire)}
        if self.early is not None:
            changes["early"] = self.early if from_text(self.early) > fire else None
            left = (item.after(self.definition.schedule, fire) for item in self.skipped)
            changes["skipped"] = tuple(item for item in left if item is not None)
        return self.model_copy(update=changes)

    def skipping(self, first: int, last: int, reason: str) -> "Entry":
        """The fire times from the first to the last have no run."""
        until = None if last == first else to_text(last)
        passed = self.passing(last)
        told = (*passed.skipped, Skipped(time=to_text(first), until=until, reason=reason))
        return passed.model_copy(update={"skipped": told[-_MAX_SKIPPED:]})

    # ------------------------------------------------------------------ a clock that was ahead
    def brought_back(self, now: int) -> "Entry":
        """What was dealt with by a clock that was ahead until now: what it has skipped comes in its time."""
        last = None if self.last is None else from_text(self.last)
        known = 0 if self.early is None else from_text(self.early)
        early = to_text(max(last, known)) if last is not None and max(last, known) > now else None
        return self.model_copy(update={"handled": to_text(now), "early": early})

    def was_early(self, fire: int) -> bool:
        """Whether the run of this fire time was enqueued before its time."""
        if self.early is None or fire > from_text(self.early):
            return False
        return not any(item.covers(fire) for item in self.skipped)

    # ------------------------------------------------------------------ what people ask for
    def replaced(self, definition: Definition, plan: Plan | None, now: int, by: str) -> "Entry":
        """Another definition; with other times only those from now on count. Paused stays paused."""
        before, after = self.definition.schedule, definition.schedule
        same = (before.cron, before.every, before.timezone) == (after.cron, after.every, after.timezone)
        changes: dict[str, object] = {
            "definition": definition,
            "plan": _own(plan),
            "registered": to_text(now),
            "registered_by": by,
        }
        if same:
            return self.model_copy(update=changes)
        changes["early"] = None  # that was of its old times
        return self._skipping_to(now).model_copy(update=changes)

    def pausing(self) -> "Entry":
        """No further runs."""
        return self.model_copy(update={"paused": True})

    def resumed(self, now: int) -> "Entry":
        """Runs again, from now on: what was due while it was paused was not wanted."""
        return self._skipping_to(now).model_copy(update={"paused": False}) if self.paused else self

    def _skipping_to(self, now: int) -> "Entry":
        return self.model_copy(update={"handled": to_text(max(now, self.handled_ms))})


def _own(plan: Plan | None) -> dict[str, Any] | None:
    return None if plan is None else dict(plan)


class ScheduleView(BaseModel):
    """A schedule as `list` and `show` tell it; times are ISO 8601 in UTC."""

    model_config = ConfigDict(frozen=True)

    name: str
    when: str
    timezone: str
    next: str | None  # None while it is paused
    last: str | None  # fire time of the last run
    last_run: str | None
    paused: bool
    overlap: Literal["skip", "queue"]
    catch_up: bool
    registered: str
    registered_by: str = ""
    changed: Act | None = None  # what an operator did last
    handled: str
    skipped: tuple[Skipped, ...]
    path: str = Field(description="its node")
    definition: dict[str, Any]
    error: str | None = None  # why its node cannot be read: no run is enqueued

    @classmethod
    def unreadable(cls, name: str, path: str, reason: str) -> "ScheduleView":
        """What is known of one whose node cannot be read."""
        return cls(
            name=name,
            when="",
            timezone="",
            next=None,
            last=None,
            last_run=None,
            paused=False,
            overlap="skip",
            catch_up=False,
            registered="",
            handled="",
            skipped=(),
            path=path,
            definition={},
            error=reason,
        )

    @classmethod
    def of(cls, entry: Entry, path: str, now: int) -> "ScheduleView":
        """The view of an entry at a time of the ensemble."""
        schedule = entry.definition.schedule
        fire = None if entry.paused else next_fire(schedule, max(now, entry.handled_ms))
        return cls(
            name=entry.definition.name,
            when=schedule.when,
            timezone=schedule.timezone,
            next=None if fire is None else to_text(fire),
            last=entry.last,
            last_run=entry.last_run,
            paused=entry.paused,
            overlap=schedule.overlap,
            catch_up=schedule.catch_up,
            registered=entry.registered,
            registered_by=entry.registered_by,
            changed=entry.changed,
            handled=entry.handled,
            skipped=entry.skipped,
            path=path,
            definition=json.loads(entry.encode())["definition"],
        )
