"""A file to which all drivers append every start of user code: at most one per attempt is allowed."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Ledger:
    """Lines of JSON: `event`, `run` (`<run key>-<attempt>`), `incarnation`, `at` (epoch seconds)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, event: str, run: str, incarnation: str, **facts: Any) -> None:
        """Append one line; lines of several writers do not mix."""
        line = json.dumps(
            {"event": event, "run": run, "incarnation": incarnation, "at": time.time(), **facts}
        )
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def lines(self, event: str = "start") -> Iterator[dict[str, Any]]:
        """The events of one kind, oldest first."""
        if not self.path.exists():
            return
        for line in self.path.read_text("utf-8").splitlines():
            if (written := json.loads(line))["event"] == event:
                yield written

    def starts(self) -> Counter[str]:
        """Number of starts of user code by run."""
        return Counter(line["run"] for line in self.lines())

    def starts_of(self, run_key: str) -> int:
        """Number of starts of user code in all attempts of a job."""
        return sum(count for run, count in self.starts().items() if run.rpartition("-")[0] == run_key)
