"""Jobs in hand with which nothing is to be done now: until a moment, or until something wakes them."""

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable

from orchestrator.handlers.job_context import JobContext
from orchestrator.loop import Loop


class Timers:
    """Parks jobs without a thread each; `ready` gets those that are to be looked at. Thread-safe."""

    def __init__(self, ready: Callable[[JobContext], None]) -> None:
        self._ready = ready
        self._guard = threading.Lock()
        self._parked: dict[
            JobContext, int
        ] = {}  # job -> its ticket; a ticket of the heap that is not here is void
        self._woken: set[JobContext] = set()  # woken while they were being looked at
        self._heap: list[tuple[float, int, JobContext]] = []
        self._tickets = itertools.count()
        self._loop = Loop("timers", self._call_due)
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Start to call those whose time has come."""
        self._loop.start()

    def stop(self) -> None:
        """Call nobody any more."""
        self._loop.stop()

    def begin(self, job: JobContext) -> None:
        """The job is looked at from now on: what woke it before is seen by this look."""
        with self._guard:
            self._woken.discard(job)

    def park(self, job: JobContext, seconds: float) -> None:
        """Let it wait; at once ready when it was woken since `begin`."""
        with self._guard:
            if job not in self._woken:
                ticket = next(self._tickets)
                self._parked[job] = ticket
                heapq.heappush(self._heap, (time.monotonic() + seconds, ticket, job))
                if self._heap[0][1] == ticket:
                    self._loop.wake()
                return
            self._woken.discard(job)
        self._ready(job)

    def wake(self, job: JobContext) -> None:
        """Something about the job may have changed. May be called by a watcher: it only hands the job on."""
        if not job.claim.held:
            return  # a watch that outlived the claim
        with self._guard:
            if self._parked.pop(job, None) is None:
                self._woken.add(job)
                return
        self._ready(job)

    def wake_all(self) -> None:
        """Anything may have changed."""
        for job in self.parked():
            self.wake(job)

    def forget(self, job: JobContext) -> None:
        """The job is not in hand any more."""
        with self._guard:
            self._parked.pop(job, None)
            self._woken.discard(job)

    def parked(self) -> list[JobContext]:
        """Those that wait now."""
        with self._guard:
            return list(self._parked)

    def empty(self) -> list[JobContext]:
        """Take all out, to let go of them."""
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
            self._ready(job)
        return min(pause, 3600.0)
