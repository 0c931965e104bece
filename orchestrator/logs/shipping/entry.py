"""A record of the spool, parsed for targets that need more than its bytes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.logs.shipping.target import DeadLetter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BAD_REQUEST = 400


@dataclass(frozen=True, slots=True)
class SpooledRecord:
    """A document with its id as `event.id`, which identifies duplicates."""

    record: bytes
    time: int  # nanoseconds since the epoch
    document: dict[str, Any]
    text: str  # the document as JSON


def spooled_records(records: Sequence[bytes]) -> tuple[list[SpooledRecord], list[DeadLetter]]:
    """Parse records; return those that are valid, and a dead letter with the reason for each other one."""
    parsed, dead = list[SpooledRecord](), list[DeadLetter]()
    for record in records:
        try:
            parsed.append(spooled_record(record))
        except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
            dead.append(DeadLetter(record, _BAD_REQUEST, f"not a log record: {type(error).__name__} {error}"))
    return parsed, dead


def spooled_record(record: bytes) -> SpooledRecord:
    """Parse a record; an invalid one raises ValueError, KeyError, IndexError, TypeError or OverflowError."""
    action, line = record.split(b"\n", 2)[:2]
    text = line.decode()
    document: dict[str, Any] = json.loads(text)
    time = datetime.fromisoformat(document["@timestamp"])
    if "event.id" not in document:
        identity = json.loads(action)["create"]["_id"]
        document["event.id"] = identity
        text = f'{{"event.id":{json.dumps(identity)},{text[1:]}'
    return SpooledRecord(record, (time - _EPOCH) // _MICROSECOND * 1000, document, text)
