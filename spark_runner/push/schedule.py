"""When the order groups of a lane may start their next batch."""

import heapq
import itertools
from collections import deque

from spark_runner.push.batch import Priority, State
from spark_runner.push.order_group import OrderGroup
from spark_runner.push.settings import Order, PushSettings

_READY = float("-inf")
_PROBE_S = 2.0  # a target that recovers is at full speed within 5 s


class Schedule:
    """The groups whose head may start, by its priority, and those that are due later.

    A group that does not start although it could is one whose head waits for more records, or for a request
    in flight: `update` tells of each change. All times are those of one monotonic clock.
    """

    def __init__(self, settings: PushSettings) -> None:
        self._settings = settings
        self._ready = {priority: deque[OrderGroup]() for priority in Priority}
        self._delayed = list[tuple[float, int, OrderGroup]]()  # a heap
        self._listed = dict[OrderGroup, float]()  # since when, or from when on, each may start
        self._paused = dict[OrderGroup, None]()  # because the target was busy: they may come early
        self._count = itertools.count()
        self.is_flushing = False
        """Whether batches start that are not full."""

    @property
    def ready(self) -> int:
        """The number of groups whose head may start."""
        return sum(map(len, self._ready.values()))

    def priorities(self, now: float) -> list[Priority]:
        """Those of which a batch may start now."""
        while self._delayed and self._delayed[0][0] <= now:
            at, _, group = heapq.heappop(self._delayed)
            if self._listed.get(group) == at:
                del self._listed[group]
                self.update(group, now)
        return [priority for priority, groups in self._ready.items() if groups]

    def next_due(self) -> float | None:
        """When the first group is due that is not ready; None without one."""
        while self._delayed and self._listed.get(self._delayed[0][2]) != self._delayed[0][0]:
            heapq.heappop(self._delayed)  # it is listed elsewhere by now
        return self._delayed[0][0] if self._delayed else None

    def update(self, group: OrderGroup, now: float) -> None:
        """Put a group where it is found when its head may start."""
        at, listed = self._due(group), self._listed.get(group)
        if at is None or listed == _READY:
            return
        if at <= now:
            self._listed[group] = _READY
            ready, head = self._ready[self._priority(group, now)], group.head
            if head is not None and head.tries:  # it has waited already, and may hold up acknowledgements
                ready.appendleft(group)
            else:
                ready.append(group)
        elif listed != at:
            self._listed[group] = at
            heapq.heappush(self._delayed, (at, next(self._count), group))

    def take(self, priority: Priority, now: float) -> OrderGroup | None:
        """A group whose head starts now; None if those that were ready have changed."""
        ready = self._ready[priority]
        while ready:
            group = ready.popleft()
            del self._listed[group]
            at = self._due(group)
            if at is not None and at <= now and self._priority(group, now) is priority:
                self._paused.pop(group, None)
                return group
            self.update(group, now)
        return None

    def pause(self, group: OrderGroup, until: float, *, is_busy: bool) -> None:
        """Let nothing of a group start before a time; it may end early if the target `is_busy`."""
        group.due = until
        if is_busy:
            self._paused[group] = None

    def end_pauses(self, free: int, now: float) -> None:
        """Let so many groups start now, as the target takes requests again."""
        while free > 0 and self._paused:
            free -= self._end_pause(now, now)

    def probe(self, now: float) -> None:
        """Let one group start soon, as the target has no request in flight."""
        while self._paused and not self._end_pause(now + _PROBE_S, now):
            pass

    def _end_pause(self, at: float, now: float) -> bool:
        """End the oldest pause at a time; returns whether it would have been longer."""
        del self._paused[group := next(iter(self._paused))]
        if group.due <= at:
            return False
        group.due = at
        self.update(group, now)
        return True

    def _due(self, group: OrderGroup) -> float | None:
        """When its head may start; None without one, or before a request in flight ends."""
        head = group.head
        if head is None or group.is_blocked:
            return None
        if head.is_closed or self.is_flushing:
            return group.due
        if self._settings.is_repeatable:
            return None
        return max(group.due, head.created + self._settings.batch_seconds)

    def _priority(self, group: OrderGroup, now: float) -> Priority:
        """That of its head, which gets low beyond its time limit; in order, it must not be overtaken."""
        head, limit = group.head, self._settings.time_limit
        assert head is not None  # noqa: S101 - for mypy: it is due
        is_late = head.state is State.TIMEOUT or now - head.created > limit
        if limit > 0 and is_late and self._settings.order is Order.NONE:
            head.priority, head.state = Priority.LOW, State.TIMEOUT
        return head.priority
