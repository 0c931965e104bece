"""The applications of a run at its master: the resources that they wait for, and their end."""

import time
from collections.abc import Callable

from spark_runner.protocol.errors import BackendUnreachable, KillError
from spark_runner.runners.standalone.api import Snapshot, StandaloneDriver, StandaloneMasters
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


_WAITING = "WAITING"


def driver_wait_reason(snapshot: Snapshot, driver: StandaloneDriver) -> str:
    """Why a driver has no node yet."""
    words = f"it waits for a node with {driver.memory_mib} MiB and {driver.cores} cores for its driver"
    return words + _beyond(snapshot, driver.memory_mib, driver.cores)


def application_wait_reason(snapshot: Snapshot, run: str) -> str:
    """Why the application of a run has no executor; empty if it has one, or does not exist."""
    for application in snapshot.applications:
        if application.state == _WAITING and is_application_of(application.name, run):
            words = f"it waits for executors with {application.memory_mib} MiB each"
            return words + _beyond(snapshot, application.memory_mib)
    return ""


def _beyond(snapshot: Snapshot, memory_mib: int, cores: int = 0) -> str:
    alive = [worker for worker in snapshot.workers if worker.is_alive]
    if any(worker.memory_mib >= memory_mib and worker.cores >= cores for worker in alive):
        return ""
    largest = max((worker.memory_mib for worker in alive), default=0)
    most = max((worker.cores for worker in alive), default=0)
    return f"; none of the {len(alive)} nodes is as large: they have {largest} MiB and {most} cores at most"
