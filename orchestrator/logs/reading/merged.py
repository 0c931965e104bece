"""Merges ordered sources of log records without duplicates."""

import heapq
from collections.abc import Iterable, Iterator

from orchestrator.logs.reading.entry import LogRecord


def merge_records(*sources: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """Merge sources that are each in order; a record that is in several sources is returned once."""
    last: LogRecord | None = None
    for entry in heapq.merge(*sources, key=lambda entry: entry.order):
        if last is None or entry.id != last.id:  # a record has the same sort key in all sources
            yield entry
        last = entry
