"""Fire times of a schedule, in epoch milliseconds of the ensemble, and the run of each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim

from orchestrator.model.definition import Definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.job_view import JobView
from orchestrator.model.plan import Plan, compile_program, decode_plan, encode_plan
from orchestrator.model.schedule import FIRE_TIME, Schedule
from orchestrator.model.times import to_text
from queues import InvalidName, Operation, check_id
from spark_runner.sql.compiler.connections import FindConnection

# A new leader takes over in less time: a fire time in between is late, not missed.
GRACE_MS = 60_000
# Runs that one schedule catches up at most: an outage of a month must not cause a flood.
MAX_CATCH_UP = 100
_MAX_ID_CHARACTERS = 128
_FIRST_SPAN_MS, _SPAN_FACTOR = (
    60_000,
    8,
)  # how far back the search for the latest fire times begins, and grows


class Enqueue(Protocol):
    """Enqueues a job, as `Client.enqueue` does."""

    def __call__(
        self,
        definition: Definition,
        plan: Plan | None,
        *,
        job_id: str,
        extra_operations: Sequence[Operation],
        origin: str,
    ) -> JobView:
        """Raises IdTaken if a job has the id, Conflict if an extra operation is refused."""


@dataclass(frozen=True, slots=True)
class Due:
    """The fire times that are due now."""

    times: tuple[int, ...] = ()  # to enqueue, in order
    missed: tuple[int, int] | None = None  # the first and the last of the earlier ones that are too old


def fires(schedule: Schedule, after: int) -> Iterator[int]:
    """The fire times later than `after`, in order; it ends only if no date matches any more.

    A schedule that follows other jobs has none.

    Around a change to or from summer time the rules are those of Debian's cron: a fixed time in the gap fires
    right after it, and one that occurs twice fires at the first occurrence; a repeated time (a minute or hour
    that starts with `*`) follows real time.
    """
    if schedule.every:
        period = round(schedule.every) * 1000
        at = after - after % period
        while True:
            at += period
            yield at
    if not schedule.cron:
        return
    previous = after
    for moment in CronSim(schedule.cron, datetime.fromtimestamp(after // 1000, ZoneInfo(schedule.timezone))):
        # Started in the second occurrence of a repeated hour, CronSim returns times of the first one.
        if (at := round(moment.timestamp()) * 1000) > previous:
            previous = at
            yield at


def next_fire(schedule: Schedule, after: int) -> int | None:
    """The first fire time after `after`."""
    return next(fires(schedule, after), None)


def latest_fires(schedule: Schedule, after: int, until: int, limit: int) -> list[int]:
    """The last fire times later than `after` and up to `until`, at most `limit`, in order."""
    span = _FIRST_SPAN_MS
    while True:  # backwards from the end in growing spans: between the two may be a year of minutes
        start = max(after, until - span)
        times = list(takewhile(lambda at: at <= until, fires(schedule, start)))
        if start == after or len(times) >= limit:
            return times[-limit:]
        span *= _SPAN_FACTOR


def due(schedule: Schedule, handled: int, now: int) -> Due:
    """The fire times that are due at `now` if every one until `handled` has been handled."""
    first = next_fire(schedule, handled)
    if first is None or first > now:
        return Due()
    start = handled if schedule.catch_up else max(handled, now - GRACE_MS - 1)
    times = latest_fires(schedule, start, now, MAX_CATCH_UP)
    if times and times[0] == first:
        return Due(tuple(times))
    before = times[0] - 1 if times else now
    return Due(tuple(times), (first, latest_fires(schedule, handled, before, 1)[0]))


# As long as a fire time, so that all positions in the script stay, and of characters without another use.
_SOME_TIME = "\ue000" * len(to_text(0))


def run_id(name: str, fire: int) -> str:
    """The id of the run, for example `nightly-20261121T110000Z`: the same for every leader."""
    return f"{name}-{datetime.fromtimestamp(fire / 1000, UTC):%Y%m%dT%H%M%SZ}"


def manual_id(name: str, at: int) -> str:
    """The id of a run that an operator asked for, for example `nightly-20261121T110000Z-manual`.

    It never ends as that of a fire time does. A long name is cut.
    """
    end = f"{run_id('', at)}-manual"
    return name[: _MAX_ID_CHARACTERS - len(end)] + end


def run_definition(definition: Definition, fire: int) -> Definition:
    """The definition of the run: that of the schedule without `schedule`, with the fire time."""
    return _run_definition(definition, to_text(fire))


def run_plan(definition: Definition, plan: Plan | None, fire: int) -> Plan | None:
    """The plan of the run, from that of the schedule, without compiling; raises DefinitionError."""
    if plan is None:
        if definition.script:
            raise DefinitionError(
                "an older version registered it without compiling its script; register it again"
            )
        return None
    return decode_plan(encode_plan(plan).replace(_SOME_TIME.encode(), to_text(fire).encode()))


def _run_definition(definition: Definition, fire_time: str) -> Definition:
    fire = {FIRE_TIME: fire_time}
    changes: dict[str, object] = {"schedule": Schedule(), "labels": definition.labels | fire}
    if definition.script:
        changes["variables"] = fire | definition.variables
    return definition.model_copy(update=changes)


def compile_registration(definition: Definition, connections: FindConnection | None = None) -> Plan | None:
    """The plan of the runs of a schedule, with a mark in place of their fire time.

    Raises DefinitionError or SqlError for a definition that cannot run periodically.
    """
    name = definition.name
    if not definition.schedule.is_set:
        raise DefinitionError(f"{name!r} has no schedule: give it 'schedule' with 'cron', 'every' or 'after'")
    try:
        check_id(run_id(name, 0))
    except InvalidName as error:
        added = len(run_id("", 0))
        raise DefinitionError(
            f"the name {name!r} has {len(name)} characters, but with a schedule {_MAX_ID_CHARACTERS - added} "
            "are allowed: "
            f"the ids of its runs are <name>-<fire time>, at most {_MAX_ID_CHARACTERS} characters"
        ) from error
    compile_program(
        run_definition(definition, 0), connections
    )  # so that its errors quote a time instead of the mark
    return compile_program(_run_definition(definition, _SOME_TIME), connections)
