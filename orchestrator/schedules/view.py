"""The view of a schedule that `schedule list` and `schedule show` print."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.model.act import Act
from orchestrator.schedules.record import ScheduleRecord, Skipped
from orchestrator.schedules.runs import next_fire, to_text


class ScheduleView(BaseModel):
    """A schedule for people and scripts; times are ISO 8601 in UTC."""

    model_config = ConfigDict(frozen=True)

    name: str
    when: str
    timezone: str
    next: str | None  # None while it is paused
    last: str | None  # fire time of the last run
    last_run: str | None
    running: bool = False  # whether that run has not ended; only for one schedule
    paused: bool
    overlap: Literal["skip", "queue"]
    catch_up: bool
    registered: str
    registered_by: str = ""
    changed: Act | None = None  # last change by an operator
    handled: str
    skipped: tuple[Skipped, ...]
    path: str = Field(description="its node")
    definition: dict[str, Any]
    error: str | None = None  # why its node cannot be read; its runs are not enqueued then

    @classmethod
    def unreadable(cls, name: str, path: str, reason: str) -> "ScheduleView":
        """The view of a schedule whose node cannot be read."""
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

    @property
    def rule(self) -> str:
        """What `overlap` means for the next fire time."""
        if not self.running:
            return self.overlap
        if self.overlap == "skip":
            return f"skip: a fire time has no run while {self.last_run} has not ended"
        limit = self.definition.get("concurrency", 0)
        then = f"concurrency is {limit} for jobs of the name" if limit else "no concurrency limits them"
        return f"queue: the next run is enqueued although {self.last_run} has not ended; {then}"

    @classmethod
    def of(cls, record: ScheduleRecord, path: str, now: int) -> "ScheduleView":
        """The view of a record; `now` in epoch milliseconds of the ensemble."""
        schedule = record.definition.schedule
        fire = None if record.paused else next_fire(schedule, max(now, record.handled_ms))
        return cls(
            name=record.definition.name,
            when=schedule.when,
            timezone=schedule.timezone,
            next=None if fire is None else to_text(fire),
            last=record.last,
            last_run=record.last_run,
            paused=record.paused,
            overlap=schedule.overlap,
            catch_up=schedule.catch_up,
            registered=record.registered,
            registered_by=record.registered_by,
            changed=record.changed,
            handled=record.handled,
            skipped=record.skipped,
            path=path,
            definition=json.loads(record.encode())["definition"],
        )
