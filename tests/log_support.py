"""Support for tests of logs: quick options, numbered records, a scripted target in memory."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.target import BatchResult, LogTarget, RefusedRecord, ShipperOptions
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.reader import SpoolReader
from orchestrator.logs.spool.segments import segments_in
from orchestrator.logs.spool.writer import Spool

KIB = 1024
QUICK = ShipperOptions(
    max_actions=50, max_seconds=0.05, adopt_seconds=0.1, status_seconds=0.05, flush_seconds=20
)
SMALL = SpoolLimits(max_bytes=1024 * KIB, segment_bytes=4 * KIB, fsync_seconds=0.02)
INDEX = "logs-2026-01-01"


def document(number: int, text: str = "") -> bytes:
    return json.dumps({"@timestamp": "2026-01-01T00:00:00Z", "message": f"n{number} {text}"}).encode()


def number_of(record: bytes) -> int:
    """The number of a record in a spool."""
    return int(json.loads(record.split(b"\n")[1])["message"].split()[0][1:])


def identity_of(record: bytes) -> str:
    return str(json.loads(record.split(b"\n")[0])["create"]["_id"])


def append(spool: Spool, numbers: range, text: str = "x" * 200) -> list[int]:
    """Append records with these numbers; returns the accepted ones."""
    return [number for number in numbers if spool.append(INDEX, document(number, text))]


def read_numbers(folder: Path, *, whole: bool = True) -> list[int]:
    """The numbers in a folder without a writer."""
    return [number_of(record) for record in read_records(SpoolReader(folder, whole=whole))]


def read_records(reader: SpoolReader, limit: int = 7) -> list[bytes]:
    found = list[bytes]()
    while (batch := reader.read(limit, 100_000)) is not None:
        found += batch.records
    return found


def sizes(folder: Path) -> list[int]:
    return [segment.size() for segment in segments_in(folder)]


Script = Callable[[Sequence[bytes]], BatchResult | None]
"""The answer to a request; None: accept all of it. May raise the errors of targets, or wait."""


class Shelf(LogTarget):
    """Stores documents by their ids, as an index does, and counts requests."""

    def __init__(self, script: Script = lambda _records: None) -> None:
        self.script = script
        self.prepare_script: Callable[[], None] = lambda: None
        self.records: dict[str, bytes] = {}
        self.came = Counter[str]()  # number of times that each id was sent
        self.requests = 0
        self.most_at_once = 0
        self._at_once = 0
        self._guard = threading.Lock()

    def prepare(self) -> None:
        self.prepare_script()

    def send(self, records: Sequence[bytes]) -> BatchResult:
        with self._guard:
            self.requests += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.came.update(map(identity_of, records))
        try:
            reply = self.script(records)
            return self.take(records) if reply is None else reply
        finally:
            with self._guard:
                self._at_once -= 1

    def take(self, records: Sequence[bytes], retry: Sequence[bytes] = ()) -> BatchResult:
        """Store all records but those to be sent again."""
        created = 0
        with self._guard:
            for record in records:
                if record not in retry:
                    created += identity_of(record) not in self.records
                    self.records.setdefault(identity_of(record), record)
        taken = len(records) - len(retry)
        return BatchResult(created=created, duplicates=taken - created, retry=list(retry))

    def refuse(self, records: Sequence[bytes], bad: Callable[[bytes], bool]) -> BatchResult:
        """Store all records but the bad ones, which are rejected."""
        dead = [record for record in records if bad(record)]
        reply = self.take([record for record in records if record not in dead])
        return BatchResult(
            reply.created, reply.duplicates, dead=[RefusedRecord(each, 400, "bad") for each in dead]
        )

    @property
    def numbers(self) -> list[int]:
        with self._guard:
            return sorted(map(number_of, self.records.values()))

    def close(self) -> None:
        pass


@contextmanager
def shipping(
    root: Path, target: LogTarget, spool: Spool | None = None, options: ShipperOptions = QUICK
) -> Iterator[Shipper]:
    """A running shipper; at the end of the block the remaining records stay in the spool."""
    shipper = Shipper(root, target, spool=spool, options=options)
    shipper.start()
    try:
        yield shipper
    finally:
        shipper.close(0)


@contextmanager
def opened(root: Path, limits: SpoolLimits = SMALL) -> Iterator[Spool]:
    spool = Spool(root, limits)
    try:
        yield spool
    finally:
        spool.close()


def drain(root: Path, target: LogTarget, options: ShipperOptions = QUICK) -> bool:
    """As the next process: adopt the spools of others, and ship all records."""
    shipper = Shipper(root, target, options=options)
    shipper.start()
    return shipper.close()


def dead_letters(root: Path) -> list[dict[str, object]]:
    """All dead letters below a root."""
    folder = root.parent / "dead-letters"
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()
    ]
