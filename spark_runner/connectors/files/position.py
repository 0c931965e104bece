"""The position in a folder of files at which a stream begins: a time."""

from datetime import UTC, datetime, timedelta

from spark_runner.connectors.errors import ConnectorError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLE = "write a time with its zone, for example 2026-11-01T00:00:00Z"


def modified_from(position: str) -> int:
    """The time of an ISO 8601 text, in microseconds since the epoch.

    A stream that begins there reads the files that were modified then or later. Raises ConnectorError.
    """
    try:
        found = datetime.fromisoformat(position)
    except ValueError as error:
        raise ConnectorError(f"it is no time; {_EXAMPLE}") from error
    if found.tzinfo is None:
        raise ConnectorError(f"it has no zone; {_EXAMPLE}")
    return (found - _EPOCH) // timedelta(microseconds=1)
