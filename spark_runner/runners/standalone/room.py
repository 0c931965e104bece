"""Explains to users which capacity a driver or an application waits for."""

from spark_runner.runners.standalone.api import Snapshot, StandaloneDriver
from spark_runner.runners.standalone.launch import is_application_of

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
