"""Log records for people: from Elasticsearch where it answers, and from the spools of this host."""

import heapq
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.logs.errors import TargetError
from orchestrator.logs.reading.query import LogQuery, LogRecord
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.spool.folder import folders_in
from orchestrator.logs.spool.reader import SpoolReader

if TYPE_CHECKING:
    from orchestrator.logs.reading.search import LogSearch


def merge_records(*sources: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """Merge sources that are each in order; a record that is in several sources is returned once."""
    last: LogRecord | None = None
    for entry in heapq.merge(*sources, key=lambda entry: entry.order):
        if last is None or entry.id != last.id:  # a record has the same sort key in all sources
            yield entry
        last = entry


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


_OVERLAP = timedelta(seconds=15)  # finds records that arrive late: hosts ship once a second
_MAX_SEEN = 100_000  # ids kept while following


class LogReader:
    """One view of all sources. `report` receives a message when Elasticsearch cannot be read."""

    def __init__(self, settings: LogSettings, root: Path, report: Callable[[str], None]) -> None:
        self._report = report
        self._search = _search_logs(settings) if settings.has_search else None
        self._root = root
        self._spooled = SpooledLogs(root)
        self._is_reported = False

    def last(self, query: LogQuery, count: int) -> list[LogRecord]:
        """The last `count` matching records, oldest first."""
        found = self._ask(lambda search: search.last(query, count))
        self._spooled = SpooledLogs(self._root)  # `follow` continues from here
        return list(merge_records(found, self._spooled.new(query)))[-count:] if count else []

    def all(self, query: LogQuery) -> Iterator[LogRecord]:
        """All matching records, oldest first."""
        spooled = SpooledLogs(self._root).new(query)
        if self._search is None:
            return iter(spooled)
        return merge_records(self._from_search(self._search, query), spooled)

    def follow(self, query: LogQuery, shown: list[LogRecord]) -> Iterator[list[LogRecord]]:
        """Yield new matching records after those in `shown`, in batches that may be empty, without end."""
        seen = deque((entry.id for entry in shown), maxlen=_MAX_SEEN)
        known = set(seen)
        newest = max((_not_ahead(entry.timestamp) for entry in shown), default=query.since)
        while True:
            recent = replace(query, since=max(query.since, _earlier(newest)))
            found = self._ask(partial(_entries, query=recent))
            news = [
                entry for entry in merge_records(found, self._spooled.new(query)) if entry.id not in known
            ]
            for entry in news:
                if len(seen) == _MAX_SEEN:
                    known.discard(seen.popleft())
                seen.append(entry.id)
                known.add(entry.id)
                newest = max(newest, _not_ahead(entry.timestamp))
            yield news

    def _ask(self, question: "Callable[[LogSearch], list[LogRecord]]") -> list[LogRecord]:
        if self._search is None:
            return []
        try:
            found = question(self._search)
        except TargetError as error:
            self._report_failure(error)
            return []
        self._is_reported = False
        return found

    def _from_search(self, search: "LogSearch", query: LogQuery) -> Iterator[LogRecord]:
        try:
            yield from search.entries(query)
        except TargetError as error:
            self._report_failure(error)

    def _report_failure(self, error: TargetError) -> None:
        if not self._is_reported:
            self._is_reported = True
            self._report(f"{error}; only the logs on this host are shown")


def _search_logs(settings: LogSettings) -> "LogSearch":
    # Imported here: it is slow to import, and many installations have no server.
    from orchestrator.logs.reading.search import LogSearch  # noqa: PLC0415 - see above
    from orchestrator.logs.shipping.http import http_of  # noqa: PLC0415 - see above

    return LogSearch(http_of(settings), settings.alias)


def _entries(search: "LogSearch", query: LogQuery) -> list[LogRecord]:
    return list(search.entries(query))


def _not_ahead(timestamp: str) -> str:
    """A time that is not later than now: drivers print any, and clocks are ahead."""
    return min(timestamp, datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"))


def _earlier(timestamp: str) -> str:
    try:
        return (datetime.fromisoformat(timestamp) - _OVERLAP).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):
        return ""
