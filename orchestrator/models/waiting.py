"""Why a job does not run yet: handlers and workers say it, who looks at the job reads it."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Reason(StrEnum):
    """What a job waits for."""

    HELD = "held"  # a worker has it in hand and is about to start it
    STARTING = "starting"  # it was submitted, and its driver has not begun
    DUE = "due"
    BACKOFF = "backoff"  # an attempt, or a look at the job, has failed
    SUBMISSION = "submission"  # it could not be submitted: its cluster is out of reach, mostly
    PAUSED = "paused"
    NO_WORKER = "no-worker"
    CAP = "cap"
    CONCURRENCY = "concurrency"
    SLOTS = "slots"
    PRESSURE = "pressure"
    MEMORY = "memory"
    DRAINING = "draining"
    TURN = "turn"  # nothing is in its way


class Waiting(BaseModel):
    """One reason, and a sentence for people; `reason` is a `Reason`, or what a newer version calls one."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    reason: str
    message: str
    worker: str = ""  # who says so, or has the job
    at: str = ""  # since when, where it was said once and may have changed; ISO 8601
    until: str = ""  # when it is looked at again at the latest, where that is known; ISO 8601


def at_cap(pool: str, running: int, cap: int) -> Waiting:
    """A pool runs as many jobs as it may."""
    return Waiting(reason=Reason.CAP, message=f"{running} jobs of pool {pool} run, and its cap is {cap}")


def at_concurrency(name: str, running: int, limit: int) -> Waiting:
    """As many jobs of one name run as may."""
    words = f"{running} jobs named {name} run, and its concurrency is {limit}"
    return Waiting(reason=Reason.CONCURRENCY, message=words)
