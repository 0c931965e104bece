"""The last fifty runs of one name, as one node stores them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queues.documents import decode, encode

MAX_RUNS = 50
MAX_RING_BYTES = 200 * 1024

Run = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ring:
    """Runs of one name in the order of their ends, evolved by copy."""

    name: str
    runs: Sequence[Run] = ()

    @classmethod
    def decode(cls, name: str, data: bytes) -> "Ring":
        """The ring in these bytes; raises ValueError for other bytes."""
        runs = decode(data).get("runs")
        if not isinstance(runs, list) or not all(isinstance(run, dict) and "run" in run for run in runs):
            message = "it holds no list of runs"
            raise ValueError(message)
        return cls(name, runs)

    def encode(self) -> bytes:
        """The bytes of the node, as JSON that zkCli shows too."""
        return encode({"name": self.name, "runs": list(self.runs)})

    def with_run(self, run: Run) -> "Ring":
        """The ring with this run in order, each run once; returns itself if nothing changes.

        A run that ended before all runs of a full ring was dropped before, and is not stored again.
        """
        if any(each["run"] == run["run"] for each in self.runs):
            return self
        runs = sorted([*self.runs, run], key=_order)[-MAX_RUNS:]
        if all(each is not run for each in runs):
            return self
        ring = Ring(self.name, runs)
        while len(ring.runs) > 1 and len(ring.encode()) > MAX_RING_BYTES:
            ring = Ring(self.name, ring.runs[1:])
        return ring


def _order(run: Run) -> tuple[str, str]:
    return str(run.get("ended") or ""), str(run["run"])
