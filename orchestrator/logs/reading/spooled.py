"""Log records in the spools of this host, including those of running processes."""

import json
from collections.abc import Iterator
from pathlib import Path

from orchestrator.logs.reading.entry import LogRecord
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.spool.folder import folders_in
from orchestrator.logs.spool.reader import SpoolReader

_AT_ONCE = 2_000
_BYTES_AT_ONCE = 4 * 1024**2


class SpooledLogs:
    """Reads all spools below a directory. Each call of `new` continues where the last one ended."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._readers: dict[Path, SpoolReader] = {}

    def new(self, query: LogQuery) -> list[LogRecord]:
        """The matching records since the last call, in order."""
        found = [entry for entry in self._all() if query.matches(entry)]
        return sorted(found, key=lambda entry: entry.order)

    def _all(self) -> Iterator[LogRecord]:
        current = folders_in(self._root)
        for path in set(self._readers) - set(current):
            del self._readers[path]
        for path in current:
            reader = self._readers.get(path)
            if reader is None:
                reader = self._readers[path] = SpoolReader(path)
            while batch := reader.read(_AT_ONCE, _BYTES_AT_ONCE):
                for record in batch.records:
                    yield log_record(record)


def log_record(record: bytes) -> LogRecord:
    """Parse a record of a spool; its checksum was valid, so it is complete."""
    action, document, _ = record.split(b"\n", 2)
    return LogRecord(str(json.loads(action)["create"]["_id"]), json.loads(document))
