"""Whose turn it is: the lanes with a batch that may start, by priority and requests in flight."""

import heapq
import itertools

from spark_runner.push.batch import Priority
from spark_runner.push.lane import Lane


class Turns:
    """An index of lanes, so that a choice among thousands takes no longer than one among a few.

    `update` comes after each change of a lane.
    """

    def __init__(self) -> None:
        self._places = dict[Lane, tuple[int, list[Priority]]]()
        # By priority and requests in flight: lanes in the order in which they came, with no values.
        self._lanes: dict[Priority, dict[int, dict[Lane, None]]] = {priority: {} for priority in Priority}
        self._times = list[tuple[float, int, Lane]]()  # a heap
        self._due = dict[Lane, float]()  # the valid time of each lane in it
        self._count = itertools.count()

    @property
    def ready(self) -> int:
        """The number of batches in lanes that may start one."""
        return sum(lane.ready for lane in self._places)

    def update(self, lane: Lane, now: float) -> None:
        """Put a lane where it belongs."""
        self.remove(lane)
        priorities = lane.priorities(now)
        if priorities:
            self._places[lane] = lane.in_flight, priorities
            for priority in priorities:
                self._lanes[priority].setdefault(lane.in_flight, {})[lane] = None
        at = lane.next_time(now)
        if at is not None and at > now:
            self._due[lane] = at
            heapq.heappush(self._times, (at, next(self._count), lane))

    def remove(self, lane: Lane) -> None:
        """Forget a lane."""
        self._due.pop(lane, None)
        in_flight, priorities = self._places.pop(lane, (0, []))
        for priority in priorities:
            lanes = self._lanes[priority][in_flight]
            del lanes[lane]
            if not lanes:
                del self._lanes[priority][in_flight]

    def wake(self, now: float) -> None:
        """Update the lanes that are due."""
        while self._times and self._times[0][0] <= now:
            at, _, lane = heapq.heappop(self._times)
            if self._due.get(lane) == at:
                self.update(lane, now)

    def next(self, priority: Priority) -> Lane | None:
        """The lane with the fewest requests in flight, of those the one that waits longest."""
        lanes = self._lanes[priority]
        return next(iter(lanes[min(lanes)])) if lanes else None

    def next_time(self, now: float) -> float | None:
        """When a lane may start a batch; None: not without other events."""
        if self._places:
            return now
        while self._times and self._due.get(self._times[0][2]) != self._times[0][0]:
            heapq.heappop(self._times)
        return self._times[0][0] if self._times else None
