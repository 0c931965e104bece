"""What became of records, counted."""

import threading
from dataclasses import dataclass, field
from typing import Any

from orchestrator.logs.shipping.target import BatchResult


@dataclass(slots=True)
class Counts:
    """Since the start of the process; every number only grows."""

    requests: int = 0
    created: int = 0
    duplicates: int = 0  # a reply or a process was lost
    diverted: int = 0  # into the failure store
    retried: int = 0
    dead: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, reply: BatchResult) -> None:
        """Count what a request has brought."""
        with self._guard:
            self.requests += 1
            self.created += reply.created
            self.duplicates += reply.duplicates
            self.diverted += reply.diverted
            self.retried += len(reply.retry)
            self.dead += len(reply.dead)

    def document(self) -> dict[str, Any]:
        """For status files."""
        with self._guard:
            return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "_guard"}
