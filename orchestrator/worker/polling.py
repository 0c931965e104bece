"""Polls the backends for the state of drivers, in bulk, and copies the logs of drivers on clusters."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.polls import note_poll
from orchestrator.loop import Loop
from queues import timestamp
from spark_runner.runners.base import Runner

_POLL_SECONDS = 1.0
_REST = 20  # a poll of thousands of drivers computes long: at most a twentieth of the time


class Polling:
    """Polls for the jobs that wait for a timer, and wakes those whose state has changed."""

    def __init__(self, waiting: Callable[[], Sequence[JobContext]]) -> None:
        self._waiting = waiting
        self._failing: set[int] = set()
        self._loop = Loop("polling", self.step, retry=_POLL_SECONDS, first=_POLL_SECONDS)
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Start the loop."""
        self._loop.start()

    def stop(self) -> None:
        """End the loop."""
        self._loop.stop()

    def step(self) -> float:
        """Poll each backend once; returns the seconds until the next poll."""
        started, computed = time.monotonic(), time.thread_time()
        by_runner: defaultdict[int, list[JobContext]] = defaultdict(list)
        runners: dict[int, Runner] = {}
        for job in self._waiting():
            if (runner := job.monitor.runner) is not None:
                by_runner[id(runner)].append(job)
                runners[id(runner)] = runner
        for key, jobs in by_runner.items():
            self._poll(runners[key], jobs)
        # A wait for a slow cluster, or for a busy processor, counts once: news should not be late by minutes.
        waited, computed = time.monotonic() - started, time.thread_time() - computed
        return max(_POLL_SECONDS, waited, _REST * computed)

    def _poll(self, runner: Runner, jobs: Sequence[JobContext]) -> None:
        try:
            answers = runner.poll_many([job.monitor.run for job in jobs])
        except Exception as error:  # noqa: BLE001 - any error of a backend means no answer
            if id(runner) not in self._failing:
                logger.warning("the backend {} does not answer: {}", runner.backend, error)
            self._failing.add(id(runner))
            at = timestamp()
            for job in jobs:
                note_poll(job, None, at=at, reason=str(error))
            return
        self._failing.discard(id(runner))
        at = timestamp()  # of all: thousands of equal texts take time and memory
        for job in jobs:
            note_poll(job, answers.get(job.monitor.run), at=at)


_COPY_SECONDS = 5.0
_COPY_REST = 5  # a round of many runs is long: it takes at most a fifth of the time
_STUCK_SECONDS = 3600.0  # logs can have many gigabytes
_HERE = "local"  # drivers on this host write their logs here


class LogCopies:
    """Calls `Runner.logs` for each running job, which copies new lines; once more after its end."""

    def __init__(self, waiting: Callable[[], Sequence[JobContext]]) -> None:
        self._waiting = waiting
        self._known: dict[str, Runner] = {}  # by the name of the run
        self._loop = Loop("log-copies", self.step, first=_COPY_SECONDS, stuck_after=_STUCK_SECONDS)
        self.start, self.stop, self.trouble = self._loop.start, self._loop.stop, self._loop.trouble

    def step(self) -> float:
        """Copy once; returns the seconds until the next round."""
        started = time.monotonic()
        running = {
            job.monitor.run: job.monitor.runner
            for job in self._waiting()
            if job.monitor.runner is not None and job.monitor.runner.backend != _HERE
        }
        for run, runner in {**self._known, **running}.items():
            if self._loop.is_stopping:
                break
            try:
                runner.logs(run)
            except Exception as error:  # noqa: BLE001 - a library of a backend may raise any error
                logger.debug("the logs of run {} cannot be copied now: {}", run, error)
        self._known = running
        return max(_COPY_SECONDS, _COPY_REST * (time.monotonic() - started))
