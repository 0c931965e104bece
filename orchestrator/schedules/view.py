"""The view of a schedule that `schedule list` and `schedule show` print."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.history.successes import Awaited
from orchestrator.model.act import Act, Word
from orchestrator.model.job_view import JobView
from orchestrator.model.times import from_text, to_text
from orchestrator.schedules.record import ScheduleRecord, Skipped
from orchestrator.schedules.runs import next_fire
from orchestrator.schedules.triggers import new_successes
from queues import InvalidName, check_id, decode, encode

GONE, UNREADABLE = "removed", "unreadable"
"""The status of a last run that was removed after its retention, and of one whose record cannot be read."""


class ManualRun(BaseModel):
    """The last run that an operator asked for, as the node of the registration stores it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Word
    at: Word
    status: str | None = None  # as `last_status`; filled in by reads

    @classmethod
    def read(cls, data: bytes) -> "ManualRun | None":
        """The run in these bytes; None for none, and for bytes of another program."""
        try:
            run = cls.model_validate(decode(data))
            check_id(run.id)
            from_text(run.at)
        except (ValueError, InvalidName):
            return None
        return run

    def encode(self) -> bytes:
        """The bytes of the node."""
        return encode({"id": self.id, "at": self.at})


class AwaitedName(BaseModel):
    """One name of `after`."""

    model_config = ConfigDict(frozen=True)

    name: str
    last_success: str | None = None  # its time, since a schedule waits for the name; None = none yet
    job: str | None = None  # the job that succeeded
    counts: bool = False  # whether it counts for the next run
    error: str | None = None  # why the node of the name cannot be read


class ScheduleView(BaseModel):
    """A schedule for people and scripts; times are ISO 8601 in UTC."""

    model_config = ConfigDict(frozen=True)

    name: str
    when: str
    timezone: str
    next: str | None  # None while it is paused
    last: str | None  # fire time of the last run
    last_run: str | None
    running: bool = False  # whether that run has not ended
    last_status: str | None = None  # of that run: of a job, or `removed` or `unreadable`
    last_ended: str | None = None
    manual_run: ManualRun | None = None  # the last one of `schedule run`
    paused: bool
    overlap: Literal["skip", "queue"]
    catch_up: bool
    registered: str
    registered_by: str = ""
    changed: Act | None = None  # last change by an operator
    handled: str
    skipped: tuple[Skipped, ...]
    waits_for: tuple[AwaitedName, ...] = ()  # with `after`
    armed_run: str | None = None  # with `after`: the run that is decided and not yet enqueued
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
        if self.overlap == "skip" and self.waits_for:
            return f"skip: the next run waits until {self.last_run} has ended"
        if self.overlap == "skip":
            return f"skip: a fire time has no run while {self.last_run} has not ended"
        limit = self.definition.get("concurrency", 0)
        then = f"concurrency is {limit} for jobs of the name" if limit else "no concurrency limits them"
        return f"queue: the next run is enqueued although {self.last_run} has not ended; {then}"

    @property
    def is_complete(self) -> bool:
        """Whether every success for which it waits counts for the next run."""
        return bool(self.waits_for) and all(each.counts for each in self.waits_for)

    def with_runs(self, jobs: Mapping[str, JobView | None], manual: ManualRun | None) -> "ScheduleView":
        """The view with the status of the last runs; `jobs` has these jobs unless they are gone."""
        changes: dict[str, object] = {}
        if manual is not None:
            changes["manual_run"] = manual.model_copy(update={"status": _status(manual.id, jobs)})
        if self.last_run is not None:
            changes["last_status"] = _status(self.last_run, jobs)
            job = jobs.get(self.last_run)
            if job is not None:
                changes |= {"running": not job.is_final, "last_ended": job.ended if job.is_final else None}
        return self.model_copy(update=changes)

    @classmethod
    def of(cls, record: ScheduleRecord, path: str, now: int, found: Mapping[str, Awaited]) -> "ScheduleView":
        """The view of a record; `now` in epoch milliseconds of the ensemble; `found` was read after it."""
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
            waits_for=_waits_for(record, found),
            armed_run=record.armed_run,
            path=path,
            definition=json.loads(record.encode())["definition"],
        )


def _status(job_id: str, jobs: Mapping[str, JobView | None]) -> str:
    job = jobs.get(job_id)
    if job is None:
        return UNREADABLE if job_id in jobs else GONE
    return job.status.value


def _waits_for(record: ScheduleRecord, found: Mapping[str, Awaited]) -> tuple[AwaitedName, ...]:
    new, names = new_successes(record, found), list[AwaitedName]()
    for name in record.definition.schedule.after:
        awaited = found.get(name, Awaited())
        success = awaited.success
        names.append(
            AwaitedName(
                name=name,
                last_success=None if success is None else success.at,
                job=None if success is None else success.job,
                counts=name in new,
                error=awaited.error or None,
            )
        )
    return tuple(names)
