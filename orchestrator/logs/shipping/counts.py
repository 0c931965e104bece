"""Counters of the shipper."""

import threading
from dataclasses import dataclass, field
from typing import Any

from orchestrator.logs.shipping.target import BatchResult


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
