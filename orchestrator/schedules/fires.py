"""Fire times: when the runs of a schedule are due, in epoch milliseconds of the ensemble, whole seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim

from orchestrator.models.schedule import Schedule

# A new leader takes over in less than that: what was due in between is late, not missed.
GRACE_MS = 60_000
# Enqueued at most for one schedule that catches up: an outage of a month must not become a flood.
MAX_CATCH_UP = 100
_FIRST_SPAN_MS, _SPAN_FACTOR = 60_000, 8  # how far back the latest fire times are looked for


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be done now."""

    times: tuple[int, ...] = ()  # to enqueue, in order
    missed: tuple[int, int] | None = None  # the first and the last of those before them that are too old


def fires(schedule: Schedule, after: int) -> Iterator[int]:
    """The fire times after `after`, which is none of them, in order; ends only when no date fits any more.

    Around a change to or from summer time cron means what Debian's cron means by it: a fixed time that is
    skipped comes right after the gap, one that comes twice is taken once, the first time; what repeats within
    the hour (a minute or hour that starts with `*`) follows real time.
    """
    if schedule.every:
        period = round(schedule.every) * 1000
        at = after - after % period
        while True:
            at += period
            yield at
    previous = after
    for moment in CronSim(schedule.cron, datetime.fromtimestamp(after // 1000, ZoneInfo(schedule.timezone))):
        # Started in the second one of a doubled hour, it would give times of the first one.
        if (at := round(moment.timestamp()) * 1000) > previous:
            previous = at
            yield at


def next_fire(schedule: Schedule, after: int) -> int | None:
    """The first fire time after `after`."""
    return next(fires(schedule, after), None)


def latest_fires(schedule: Schedule, after: int, until: int, limit: int) -> list[int]:
    """The last fire times after `after` and not after `until`, `limit` at most, in order."""
    span = _FIRST_SPAN_MS
    while True:  # from the end, further back each time: between the two may lie a year of minutes
        start = max(after, until - span)
        times = list(takewhile(lambda at: at <= until, fires(schedule, start)))
        if start == after or len(times) >= limit:
            return times[-limit:]
        span *= _SPAN_FACTOR


def due(schedule: Schedule, handled: int, now: int) -> Due:
    """What is to be done at `now` when every fire time until `handled` has been dealt with."""
    first = next_fire(schedule, handled)
    if first is None or first > now:
        return Due()
    start = handled if schedule.catch_up else max(handled, now - GRACE_MS - 1)
    times = latest_fires(schedule, start, now, MAX_CATCH_UP)
    if times and times[0] == first:
        return Due(tuple(times))
    before = times[0] - 1 if times else now
    return Due(tuple(times), (first, latest_fires(schedule, handled, before, 1)[0]))


def to_text(at: int) -> str:
    """Epoch milliseconds as they stand in nodes: ISO 8601, UTC, with milliseconds where there are any."""
    precision = "milliseconds" if at % 1000 else "seconds"
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def from_text(text: str) -> int:
    """Epoch milliseconds of such a text; raises ValueError."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
