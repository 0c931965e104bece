"""Stored times, ISO 8601 in UTC, as they are read again: they may be anything by then."""

from datetime import UTC, datetime


def moment(timestamp: object) -> datetime | None:
    """A stored time in the time zone of this machine; None for what is none."""
    try:
        found = datetime.fromisoformat(timestamp)  # type: ignore[arg-type]  # who gives no text hears it
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone()
    except (TypeError, ValueError, OverflowError):
        return None


def local_time(timestamp: object) -> str:
    """A stored time as a person at this machine reads it; what is none as it stands."""
    if timestamp is None:
        return ""
    found = moment(timestamp)
    return str(timestamp) if found is None else found.strftime("%Y-%m-%d %H:%M:%S")


def seconds_between(start: object, end: object) -> float | None:
    """Seconds from one stored time to another, to the millisecond; None where one of them is none."""
    begun, ended = moment(start), moment(end)
    return None if begun is None or ended is None else round((ended - begun).total_seconds(), 3)
