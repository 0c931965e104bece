"""What the serving task counts: a page is a request, which ends once the client has acknowledged it."""

from collections import deque
from typing import Any

from spark_runner.push.measures import Counts, Delay, Latencies


class PageMeasures:
    """The numbers of one server since its start, in the form of a task's report."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.stopped_seconds = self.push_seconds = 0.0
        self._latencies, self._delay = Latencies(), Delay()
        self._pages = deque[tuple[int, float]]()  # position after a page, when it was served first

    def served(self, first: int, end: int, before: int, now: float) -> None:
        """A page with the rows from `first` to `end` was served; before it, those up to `before` were."""
        self.counts.requests += 1
        self.counts.retried += max(0, min(end, before) - first)
        if end > before:
            self._pages.append((end, now))

    def acknowledged(self, count: int, position: int, now: float) -> None:
        """A client has acknowledged `count` rows, up to this position."""
        self.counts.delivered += count
        self._delay.add(now)
        while self._pages and self._pages[0][0] <= position:
            latency = now - self._pages.popleft()[1]
            self.push_seconds += latency
            self._latencies.add(latency)

    def document(self) -> dict[str, Any]:
        """All numbers."""
        return {
            "lanes": {"": self.counts.document()},
            "latencies": {str(bucket): count for bucket, count in self._latencies.counts.items()},
            "push_seconds": round(self.push_seconds, 3),
            "stopped_seconds": round(self.stopped_seconds, 3),
            "delay": round(self._delay.seconds(), 3),
        }
