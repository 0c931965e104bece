"""A record of the spool taken apart, for targets that want more of it than its bytes."""

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
    """A document with its id as `event.id`, by which copies of it are known."""

    record: bytes
    time: int  # nanoseconds since the epoch
    document: dict[str, Any]
    text: str  # the document as JSON


def spooled_records(records: Sequence[bytes]) -> tuple[list[SpooledRecord], list[DeadLetter]]:
    """The entries of records, and those that are none: each with the reason."""
    entries, dead = list[SpooledRecord](), list[DeadLetter]()
    for record in records:
        try:
            entries.append(spooled_record(record))
        except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
            dead.append(DeadLetter(record, _BAD_REQUEST, f"not a log record: {type(error).__name__} {error}"))
    return entries, dead


def spooled_record(record: bytes) -> SpooledRecord:
    """The entry of a record; what is no record raises ValueError, KeyError, IndexError or TypeError."""
    action, line = record.split(b"\n", 2)[:2]
    text = line.decode()
    document: dict[str, Any] = json.loads(text)
    time = datetime.fromisoformat(document["@timestamp"])
    if "event.id" not in document:
        identity = json.loads(action)["create"]["_id"]
        document["event.id"] = identity
        text = f'{{"event.id":{json.dumps(identity)},{text[1:]}'
    return SpooledRecord(record, (time - _EPOCH) // _MICROSECOND * 1000, document, text)
