"""Asking the backends how the drivers are: in bulk, and without a write."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.loop import Loop
from spark_runner.runners.base import Runner

_POLL_SECONDS = 1.0
_REST = 20  # a poll of thousands takes its time: it may have a twentieth of it


class Polling:
    """Polls for the jobs that wait, and wakes those about which there is news."""

    def __init__(self, waiting: Callable[[], Sequence[JobContext]]) -> None:
        self._waiting = waiting
        self._failing: set[int] = set()
        self._loop = Loop("polling", self.step, retry=_POLL_SECONDS, first=_POLL_SECONDS)
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Start to poll."""
        self._loop.start()

    def stop(self) -> None:
        """Poll no more."""
        self._loop.stop()

    def step(self) -> float:
        """Ask each backend once; returns the seconds until the next time."""
        started = time.monotonic()
        by_runner: defaultdict[int, list[JobContext]] = defaultdict(list)
        runners: dict[int, Runner] = {}
        for job in self._waiting():
            if (runner := job.monitor.runner) is not None:
                by_runner[id(runner)].append(job)
                runners[id(runner)] = runner
        for key, jobs in by_runner.items():
            self._poll(runners[key], jobs)
        return max(_POLL_SECONDS, _REST * (time.monotonic() - started))

    def _poll(self, runner: Runner, jobs: Sequence[JobContext]) -> None:
        try:
            answers = runner.poll_many([job.monitor.run for job in jobs])
        except Exception as error:  # noqa: BLE001 - a backend that does not answer tells nothing, whatever it raises
            if id(runner) not in self._failing:
                logger.warning("the backend {} does not answer: {}", runner.backend, error)
            self._failing.add(id(runner))
            for job in jobs:
                job.note_poll(None, str(error))
            return
        self._failing.discard(id(runner))
        for job in jobs:
            job.note_poll(answers.get(job.monitor.run))
