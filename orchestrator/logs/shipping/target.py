"""The Protocol of log targets: records, options, verdicts on a batch, and counts."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that the target rejects permanently."""

    record: bytes
    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one request."""

    created: int = 0
    duplicates: int = 0  # existed already, because a response or a process was lost
    diverted: int = 0  # accepted, but into the failure store of a data stream
    retry: Sequence[bytes] = ()  # not accepted at present
    dead: Sequence[RefusedRecord] = ()


class LogTarget(Protocol):
    """Accepts records in the format of the spool, two lines each. Thread-safe."""

    def prepare(self) -> None:
        """Create what the target needs to accept records; raises TargetUnreachable, TargetRefuses."""

    def send(self, records: Sequence[bytes]) -> BatchResult:
        """Send records, as a whole or each with its own result.

        Raises TargetUnreachable, TargetBusy, TargetRefuses, RequestTooLarge, RequestMalformed.
        """

    def close(self) -> None:
        """Close the connections."""


@dataclass(slots=True)
class Counts:
    """Counters since the start of the process."""

    requests: int = 0
    created: int = 0
    duplicates: int = 0  # a response or a process was lost
    diverted: int = 0  # stored in the failure store
    retried: int = 0
    dead: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, result: BatchResult) -> None:
        """Add the result of a request."""
        with self._guard:
            self.requests += 1
            self.created += result.created
            self.duplicates += result.duplicates
            self.diverted += result.diverted
            self.retried += len(result.retry)
            self.dead += len(result.dead)

    def document(self) -> dict[str, Any]:
        """The counters by name, for status files."""
        with self._guard:
            return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "_guard"}


@dataclass(frozen=True, slots=True)
class ShipperOptions:
    """Limits and intervals of a shipper; docs/logs.md describes the defaults."""

    max_actions: int = 2_000  # records per request; twice as fast as 500, and as fast as 10,000
    max_bytes: int = 5_000_000
    max_seconds: float = 1.0  # until an incomplete batch is sent
    in_flight: int = 2  # concurrent requests: more gain a few percent, and each holds a thread and a batch
    adopt_seconds: float = 10.0  # between searches for spools of processes that have ended
    status_seconds: float = 1.0  # between checkpoints and status files
    flush_seconds: float = 5.0  # at the end of the process; another process ships the rest


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


def spooled_records(records: Sequence[bytes]) -> tuple[list[SpooledRecord], list[RefusedRecord]]:
    """Parse records; return those that are valid, and a dead letter with the reason for each other one."""
    parsed, dead = list[SpooledRecord](), list[RefusedRecord]()
    for record in records:
        try:
            parsed.append(spooled_record(record))
        except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
            dead.append(
                RefusedRecord(record, _BAD_REQUEST, f"not a log record: {type(error).__name__} {error}")
            )
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
