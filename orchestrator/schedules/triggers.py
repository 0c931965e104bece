"""The rule of schedules that follow jobs: a run once every awaited name has succeeded since the last run."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from orchestrator.history.successes import Awaited, Success
from orchestrator.model.times import from_text
from orchestrator.schedules.record import ScheduleRecord

_SECOND_MS = 1000


def new_successes(record: ScheduleRecord, found: Mapping[str, Awaited]) -> dict[str, Success]:
    """The successes that count for the next run, by name.

    `found` must have been read after the record: then a success other than that of the record is a later one.
    """
    seen = record.seen or {}
    return {
        name: awaited.success
        for name in record.definition.schedule.after
        if (awaited := found.get(name)) is not None
        and awaited.success is not None
        and awaited.success.run != seen.get(name)
    }


def is_complete(record: ScheduleRecord, found: Mapping[str, Awaited]) -> bool:
    """Whether every name for which the schedule waits has a success that counts."""
    return len(new_successes(record, found)) == len(record.definition.schedule.after)


def armed(record: ScheduleRecord, found: Mapping[str, Awaited], now: int) -> ScheduleRecord | None:
    """The record with the next run decided; None while a success is missing.

    The fire time is that of the newest success in whole seconds, not in the future, and later than that of
    the last run: so each run has its own id.
    """
    if not is_complete(record, found):
        return None
    names, new = record.definition.schedule.after, new_successes(record, found)
    newest = max(0, min(now, max(from_text(success.at) for success in new.values())))
    fire = newest - newest % _SECOND_MS
    if record.last is not None:
        fire = max(fire, from_text(record.last) + _SECOND_MS)
    seen = {name: success.run for name, success in new.items()}
    return record.arming(fire, seen, [new[name].job for name in names])


def circle_of(name: str, after: Iterable[str], names_of: Callable[[str], Sequence[str]]) -> list[str] | None:
    """A way from a schedule back to itself through what schedules wait for; None without one.

    `names_of` returns the names for which the schedule of another name waits.
    """
    ways, seen = [[name, other] for other in after], set[str]()
    while ways:
        way = ways.pop()
        if way[-1] == name:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [[*way, other] for other in names_of(way[-1])]
    return None
