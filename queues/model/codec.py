"""The content of nodes: JSON that is readable with zkCli."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

# A document that contains itself fails by its depth, so that a check for cycles is not needed.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "), check_circular=False)
_EPOCH = datetime.fromtimestamp(0, UTC)
_latest = (0, "")  # milliseconds, and their text


def encode(document: dict[str, Any]) -> bytes:
    """JSON bytes of a document, uncompressed, keys in insertion order."""
    return _ENCODER.encode(document).encode()


def decode(data: bytes) -> dict[str, Any]:
    """The document in these bytes; raises ValueError unless they are a JSON object that can be written again.

    An object with half of a surrogate pair cannot: no path, log or terminal accepts that either.
    """
    try:
        document = json.loads(data.decode())
        if b"\\u" in data:  # in UTF-8, half pairs occur only as escapes
            _ENCODER.encode(document).encode()
    except RecursionError:
        message = "it is nested too deeply"
        raise ValueError(message) from None
    if not isinstance(document, dict):
        message = f"expected a JSON object, found {type(document).__name__}"
        raise ValueError(message)  # noqa: TRY004 - one error type for every kind of bad bytes
    return document


def new_nonce() -> str:
    """A unique name of 32 hex digits, at a tenth of the cost of a UUID object."""
    return os.urandom(16).hex()


def new_uuid() -> str:
    """A random UUID (version 4, RFC 9562) as text."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def timestamp() -> str:
    """The current time as ISO 8601 text: UTC, milliseconds."""
    global _latest  # noqa: PLW0603 - a cache: many calls fall into one millisecond
    now = time.time_ns() // 1_000_000
    if now != _latest[0]:
        moment = _EPOCH + timedelta(milliseconds=now)
        _latest = (now, moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    return _latest[1]
