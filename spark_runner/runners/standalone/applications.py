"""The applications of a run at its master: they go with their driver, and are ended where they stay."""

import time
from collections.abc import Callable

from spark_runner.errors import BackendUnreachable, KillError
from spark_runner.runners.standalone.api import StandaloneMasters
from spark_runner.runners.standalone.launch import is_application_of

_GOODBYE_SECONDS = 1.5  # a master notices at once that the connection of a driver is closed
_END_SECONDS = 4.0
_LOOK_SECONDS = 0.3


def end_applications(masters: StandaloneMasters, run: str) -> None:
    """Wait for the end of a run's applications, end those that stay, and verify; raises KillError."""
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
    """Call `end` until it says that nothing is left; raises KillError, also where nobody can tell."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            left = end()
        except BackendUnreachable as error:
            left = f"what its cluster does not tell of: {error}"
        except (OSError, ValueError, KeyError, TypeError) as error:
            left = f"what its directory does not tell of: {error!r}"
        if not left:
            return
        if time.monotonic() > deadline:
            raise KillError(f"run {run} is not ended, there are still {left}")
        time.sleep(_LOOK_SECONDS)
