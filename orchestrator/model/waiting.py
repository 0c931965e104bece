"""The reason why a job does not run yet, as handlers and workers record it."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Reason(StrEnum):
    """The condition that a job waits for."""

    HELD = "held"  # a worker has claimed it and is about to start it
    STARTING = "starting"  # it was submitted, and its driver has not started
    DUE = "due"
    BACKOFF = "backoff"  # an attempt or a handler has failed
    SUBMISSION = "submission"  # it could not be submitted: mostly, its cluster is out of reach
    PAUSED = "paused"
    NO_WORKER = "no-worker"
    CAP = "cap"
    HIGH_WATER = "high-water"  # the target of its pool takes rows too slowly
    CONCURRENCY = "concurrency"
    SLOTS = "slots"
    PRESSURE = "pressure"
    MEMORY = "memory"
    PACKAGES = "packages"  # the Python packages of the job are being installed on the host
    DRAINING = "draining"
    TURN = "turn"  # nothing blocks it


class Waiting(BaseModel):
    """A reason, and a sentence for users; `reason` is a `Reason`, or one of a newer version."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    reason: str
    message: str
    worker: str = ""  # the worker that reports it, or holds the job
    at: str = ""  # the time of the report, where it may be outdated; ISO 8601
    until: str = ""  # the latest time of the next check, where known; ISO 8601


def at_cap(pool: str, running: int, cap: int) -> Waiting:
    """The pool runs as many jobs as its cap allows."""
    return Waiting(reason=Reason.CAP, message=f"{running} jobs of pool {pool} run, and its cap is {cap}")


def at_checkpoint(name: str) -> Waiting:
    """Another job of the name runs, and this one continues from its checkpoint."""
    words = f"a job named {name} runs, or its checkpoints are being removed; one job at a time uses them"
    return Waiting(reason=Reason.CONCURRENCY, message=words)


def at_concurrency(name: str, running: int, limit: int) -> Waiting:
    """As many jobs of one name run as its concurrency allows."""
    words = f"concurrency is {limit} for jobs named {name}, and {running} {'runs' if running == 1 else 'run'}"
    return Waiting(reason=Reason.CONCURRENCY, message=words)
