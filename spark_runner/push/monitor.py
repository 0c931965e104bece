"""Watches a push: what it counts and measures, by lane and in total."""

from collections.abc import Mapping
from typing import Any

from spark_runner.push.batch import Batch
from spark_runner.push.errors import DeliveryError, Partial, TimedOut
from spark_runner.push.measures import Counts, Delay, Latencies, Speed
from spark_runner.push.retry import FollowUp, Results, retryable

_MAX_LANES = 1000  # with counts of their own
_MAX_SHOWN, _NAME_CHARS = 60, 60  # of a report: lanes, and characters of a name
OTHERS = "(others)"
"""The lanes without counts of their own."""


class Monitor:
    """The numbers of one push since its start."""

    def __init__(self, now: float) -> None:
        self.lanes = dict[str, Counts]()
        self.speed_in, self.speed_out = Speed(now), Speed(now)
        self.latencies, self.delay = Latencies(), Delay()
        self.push_seconds = self.stopped_seconds = self.read_seconds = 0.0
        self.recovered = 0
        """Order groups that were rolled back because acknowledgements did not come in order."""

    def total(self) -> Counts:
        """The counts of all lanes."""
        found = Counts()
        for counts in self.lanes.values():
            found += counts
        return found

    def read(self, lane: str, count: int, now: float) -> None:
        """Rows of a lane came."""
        self._of(lane).read += count
        self.speed_in.add(count, now)

    def pulled(self, seconds: float) -> None:
        """The producer took so long to have its next records."""
        self.read_seconds += seconds

    def stopped(self, seconds: float) -> None:
        """The producer waited for room."""
        self.stopped_seconds += seconds

    def ended(self, batch: Batch, results: Results, follow: FollowUp, now: float, *, is_late: bool) -> None:
        """A request of a batch has ended."""
        counts, latency = self._of(batch.lane), now - batch.started
        counts.requests += 1
        self.push_seconds += latency
        self.latencies.add(latency)
        error, left = retryable(batch, results), sum(each.rows for each in follow.rest)
        if isinstance(results, DeliveryError) or (error is not None and left == batch.rows):
            counts.errors += 1
            counts.timeouts += isinstance(error, TimedOut)
        if is_late:
            counts.late += 1
            counts.retried += batch.rows  # all of them come again
        else:
            counts.retried += left - _unsent(results)

    def document(self) -> dict[str, Any]:
        """All numbers: those of the lanes with the most records, and of the others together."""
        found = dict[str, Counts]()
        for place, name in enumerate(sorted(self.lanes, key=lambda name: -self.lanes[name].read)):
            shown = name[:_NAME_CHARS] if place < _MAX_SHOWN else OTHERS
            found.setdefault(shown, Counts())
            found[shown] += self.lanes[name]
        return {
            "lanes": {name: counts.document() for name, counts in found.items()},
            "latencies": {str(bucket): count for bucket, count in self.latencies.counts.items()},
            "recovered": self.recovered,
            "read_seconds": round(self.read_seconds, 3),
            "push_seconds": round(self.push_seconds, 3),
            "stopped_seconds": round(self.stopped_seconds, 3),
            "delay": round(self.delay.seconds(), 3),
        }

    def acknowledged(self, batch: Batch, now: float) -> None:
        """Each record of a batch is delivered, or a dead letter."""
        counts = self._of(batch.lane)
        dead = sum(letter.rows for letter in batch.dead)
        counts.dead += dead
        counts.delivered += batch.rows - dead
        if batch.rows:
            self.speed_out.add(batch.rows, now)
            self.delay.add(now)

    def _of(self, lane: str) -> Counts:
        if lane not in self.lanes:
            lane = lane if len(self.lanes) < _MAX_LANES else OTHERS
        return self.lanes.setdefault(lane, Counts())


def _unsent(results: Results) -> int:
    """The rows that come again and were not in the request."""
    errors = results.values() if isinstance(results, Mapping) else ()
    return sum(error.unsent for error in errors if isinstance(error, Partial))
