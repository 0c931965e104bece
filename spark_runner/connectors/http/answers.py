"""The answer to a request."""

import http.client
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime

_SWITCHES, _FINAL = 101, 200  # the status that switches protocols; the first status of final answers
_MOST_INTERIM = 100  # answers before the final one; servers that work for long send some per minute


class FinalResponse(http.client.HTTPResponse):
    """A response that is a final one: `http.client` takes each status but 100 for final."""

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_MOST_INTERIM + 1):
            version, status, reason = super()._read_status()  # type: ignore[misc]  # typeshed leaves it out
            if status >= _FINAL:
                return version, status, reason
            if status == _SWITCHES:
                raise http.client.HTTPException("it switches to another protocol")
            http.client.parse_headers(self.fp)
        raise http.client.HTTPException(f"more than {_MOST_INTERIM} interim answers")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request; `is_whole` is false if it has more bytes than allowed."""

    status: int
    headers: Message
    data: bytes
    is_whole: bool

    def retry_after(self) -> float:
        """The seconds that the server asks to wait; 0 without them."""
        value = str(self.headers.get("Retry-After", "")).strip()
        try:
            return float(value) if value.isdecimal() else _seconds_until(value)
        except (ValueError, OverflowError):
            return 0.0


def _seconds_until(date: str) -> float:
    found = parsedate_to_datetime(date)
    return (found - datetime.now(UTC)).total_seconds() if found.tzinfo else 0.0
