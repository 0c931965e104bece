"""Copies the logs of drivers on clusters to this host, where the log pipeline collects them."""

import time
from collections.abc import Callable, Sequence

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.loop import Loop
from spark_runner.runners.base import Runner

_COPY_SECONDS = 5.0
_REST = 5  # a round of many runs is long: it takes at most a fifth of the time
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
        return max(_COPY_SECONDS, _REST * (time.monotonic() - started))
