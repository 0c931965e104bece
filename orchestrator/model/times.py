"""Stored times, ISO 8601 in UTC; other programs may have written anything."""

from datetime import UTC, datetime, timedelta

_MAX_CHARACTERS = 40
_TOLERANCE = timedelta(minutes=5)


def to_text(at: int) -> str:
    """Epoch milliseconds as nodes store them: ISO 8601, UTC, with milliseconds unless they are zero."""
    precision = "milliseconds" if at % 1000 else "seconds"
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def from_text(text: str) -> int:
    """Epoch milliseconds of such a text; raises ValueError."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except OverflowError as error:
        raise ValueError(str(error)) from error


def moment(timestamp: object) -> datetime | None:
    """A stored time in the time zone of this machine; None for anything else."""
    if not isinstance(timestamp, str):
        return None
    try:
        found = datetime.fromisoformat(timestamp)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone()
    except (ValueError, OverflowError):
        return None


def stored_time(timestamp: object) -> str | None:
    """The stored time itself, fit for a record; None for anything else."""
    fits = isinstance(timestamp, str) and len(timestamp) <= _MAX_CHARACTERS
    return timestamp if fits and isinstance(timestamp, str) and moment(timestamp) else None


def no_later(timestamp: object, written_ms: int) -> object:
    """The stored time, or the time at which it was written, in epoch ms, if it is invalid or much later.

    Hosts whose clock is wrong write times of the future. `written_ms` 0 = unknown.
    """
    found, written = moment(timestamp), datetime.fromtimestamp(written_ms / 1000, UTC)
    if not written_ms or (found is not None and found <= written + _TOLERANCE):
        return timestamp
    return written.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local_time(timestamp: object) -> str:
    """A stored time in local time with its zone, for users; anything else unchanged."""
    if timestamp is None:
        return ""
    found = moment(timestamp)
    return str(timestamp) if found is None else found.strftime("%Y-%m-%d %H:%M:%S %Z")


def ago(timestamp: object, now: datetime | None = None) -> str:
    """A stored time relative to now: `12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`; anything else unchanged.

    A time of the near future, from a host whose clock is ahead, is `now`.
    """
    found = moment(timestamp)
    if found is None:
        return local_time(timestamp)
    seconds = ((now or datetime.now(UTC)) - found).total_seconds()
    if seconds < -_TOLERANCE.total_seconds():
        return local_time(timestamp)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "now"


def seconds_between(start: object, end: object) -> float | None:
    """Seconds from one stored time to another, to the millisecond; None where one is invalid."""
    begun, ended = moment(start), moment(end)
    return None if begun is None or ended is None else round((ended - begun).total_seconds(), 3)
