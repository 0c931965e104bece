"""Timers: scheduled wake-ups of jobs in flight that have nothing to do now."""

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable

from orchestrator.handlers.job_context import JobContext
from orchestrator.loop import Loop

# A job that is woken leaves its entry behind: without a limit, frequent wakes fill the memory until long
# waits are over. asyncio limits its cancelled timers in the same way.
_MOST_VOID, _FEW = 1.5, 100


class Timers:
    """Holds waiting jobs without a thread each; `ready` receives a job when it is woken. Thread-safe."""

    def __init__(
        self, ready: Callable[[JobContext], None], *, on_due: Callable[[JobContext], None] | None = None
    ) -> None:
        """`on_due` receives a job instead of `ready` when its time is over."""
        self._ready, self._on_due = ready, on_due or ready
        self._guard = threading.Lock()
        self._parked: dict[JobContext, int] = {}  # the ticket of each job; others in the heap are void
        self._woken: set[JobContext] = set()  # woken while a handler ran
        self._heap: list[tuple[float, int, JobContext]] = []
        self._tickets = itertools.count()
        self._loop = Loop("timers", self._call_due)
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Start the loop."""
        self._loop.start()

    def stop(self) -> None:
        """End the loop: no timer fires any more."""
        self._loop.stop()

    def begin(self, job: JobContext) -> None:
        """Discard earlier wake-ups: the handler that starts now observes their changes."""
        with self._guard:
            self._woken.discard(job)

    def park(self, job: JobContext, seconds: float) -> None:
        """Wake the job after so many seconds, or at once when it was woken since `begin`."""
        with self._guard:
            if job not in self._woken:
                ticket = next(self._tickets)
                self._parked[job] = ticket
                if len(self._heap) > _MOST_VOID * len(self._parked) + _FEW:
                    self._heap = [entry for entry in self._heap if self._parked.get(entry[2]) == entry[1]]
                    heapq.heapify(self._heap)
                heapq.heappush(self._heap, (time.monotonic() + seconds, ticket, job))
                if self._heap[0][1] == ticket:
                    self._loop.wake()
                return
            self._woken.discard(job)
        self._ready(job)

    def wake(self, job: JobContext) -> None:
        """Wake the job now. Safe in a callback of a watch: it only puts the job into an inbox."""
        if not job.claim.held:
            return  # the watch outlived the claim
        with self._guard:
            if self._parked.pop(job, None) is None:
                self._woken.add(job)
                return
        self._ready(job)

    def wake_all(self) -> None:
        """Wake all waiting jobs."""
        for job in self.parked():
            self.wake(job)

    def forget(self, job: JobContext) -> None:
        """Cancel the timer of a job that is not in flight any more."""
        with self._guard:
            self._parked.pop(job, None)
            self._woken.discard(job)

    def parked(self) -> list[JobContext]:
        """The jobs that wait now."""
        with self._guard:
            return list(self._parked)

    def empty(self) -> list[JobContext]:
        """Take out and return all jobs, to release them."""
        with self._guard:
            jobs = list(self._parked)
            self._parked.clear()
            self._heap.clear()
            return jobs

    def _call_due(self) -> float:
        due, now = [], time.monotonic()
        with self._guard:
            while self._heap:
                at, ticket, job = self._heap[0]
                if self._parked.get(job) != ticket:
                    heapq.heappop(self._heap)
                elif at <= now:
                    heapq.heappop(self._heap)
                    del self._parked[job]
                    due.append(job)
                else:
                    break
            pause = self._heap[0][0] - now if self._heap else math.inf
        for job in due:
            self._on_due(job)
        return min(pause, 3600.0)
