"""Several places of log records as one: in order, each record once."""

import heapq
from collections.abc import Iterable, Iterator

from orchestrator.logs.reading.entry import LogRecord


def merged(*sources: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """The entries of sources that are each in order; one that several have comes once."""
    last: LogRecord | None = None
    for entry in heapq.merge(*sources, key=lambda entry: entry.order):
        if last is None or entry.id != last.id:  # the same record has the same order wherever it stands
            yield entry
        last = entry
