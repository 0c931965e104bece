"""Ends the applications of a run that remain at the master after the end of their driver."""

import time
from collections.abc import Callable

from spark_runner.errors import BackendUnreachable, KillError
from spark_runner.runners.standalone.api import StandaloneMasters
from spark_runner.runners.standalone.launch import is_application_of

_GOODBYE_SECONDS = 1.5  # a master notices the closed connection of a driver at once
_END_SECONDS = 4.0
_LOOK_SECONDS = 0.3


def end_applications(masters: StandaloneMasters, run: str) -> None:
    """Wait for the end of a run's applications, end those that remain, and verify; raises KillError."""
    asked: set[str] = set()
    patience = time.monotonic() + _GOODBYE_SECONDS

    def end() -> str:
        left = [found.id for found in masters.snapshot().applications if is_application_of(found.name, run)]
        for application in left:
            if application not in asked and time.monotonic() > patience:
                masters.kill_application(application)
                asked.add(application)
        return f"applications {', '.join(left)}" if left else ""

    wait_ended(end, run, _GOODBYE_SECONDS + _END_SECONDS)


def wait_ended(end: Callable[[], str], run: str, seconds: float) -> None:
    """Call `end` until it returns that nothing is left; raises KillError, also if that cannot be verified."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            left = end()
        except BackendUnreachable as error:
            left = f"unknown, because its cluster does not answer: {error}"
        except (OSError, ValueError, KeyError, TypeError) as error:
            left = f"unknown, because its directory cannot be read: {error!r}"
        if not left:
            return
        if time.monotonic() > deadline:
            raise KillError(f"run {run} has not ended, still there: {left}")
        time.sleep(_LOOK_SECONDS)
