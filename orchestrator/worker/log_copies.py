"""Brings the logs of drivers on clusters to this host again and again, for who collects them here."""

import time
from collections.abc import Callable, Sequence

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.loop import Loop
from spark_runner.runners.base import Runner

_COPY_SECONDS = 5.0
_REST = 5  # a round of many takes its time: it may have a fifth of it
_STUCK_SECONDS = 3600.0  # logs may be many gigabytes
_HERE = "local"  # what runs on this host writes here


class LogCopies:
    """Asks the runner of each running job for its logs, which copies what is new; once more after its end."""

    def __init__(self, waiting: Callable[[], Sequence[JobContext]]) -> None:
        self._waiting = waiting
        self._known: dict[str, Runner] = {}  # run -> who has it
        self._loop = Loop("log-copies", self.step, first=_COPY_SECONDS, stuck_after=_STUCK_SECONDS)
        self.start, self.stop, self.trouble = self._loop.start, self._loop.stop, self._loop.trouble

    def step(self) -> float:
        """Copy once; returns the seconds until the next time."""
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
            except Exception as error:  # noqa: BLE001 - libraries of backends raise what they like
                logger.debug("the logs of run {} cannot be copied now: {}", run, error)
        self._known = running
        return max(_COPY_SECONDS, _REST * (time.monotonic() - started))
