"""What every place that can run a driver offers: the Runner protocol and its values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol


class RunState(StrEnum):
    """What a backend says about one submission of a run; never a verdict on the job."""

    RUNNING = "running"  # the driver, or what starts it, is there
    EXITED = "exited"  # it ended and its exit code is known
    GONE = "gone"  # it ended and nothing is known of how; verified, not assumed
    UNKNOWN = "unknown"  # this host cannot tell


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt was submitted: enough for another worker to know whether it can reach it."""

    backend: str
    host: str
    boot: str  # boot id of the host: a process id means nothing after a reboot
    store: str = ""  # id of the state directory: workers of one host may have several

    def to_json(self) -> dict[str, str]:
        """The form kept in the attempt node."""
        return asdict(self)

    @classmethod
    def of(cls, document: object) -> "Place | None":
        """The place in a node, None where somebody else has written something else."""
        try:
            return cls(**document) if isinstance(document, dict) else None
        except TypeError:
            return None

    def is_at(self, other: "Place") -> bool:
        """Whether both are the same place, in whatever boot of the host."""
        return (self.backend, self.host, self.store) == (other.backend, other.host, other.store)


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """All that a runner needs to start one driver.

    `run` is "<run key>-<attempt>", the only name that the outside world sees; `incarnation` is the
    uuid of this one submission, so that a second submission of the same attempt can be told apart.
    """

    run: str
    incarnation: str
    name: str  # for people: the application name
    plan: Mapping[str, Any]  # JSON; what the driver executes
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    driver_memory: str = ""  # Spark's own notation, e.g. "1g"; empty = Spark's default
    py_files: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission as its backend sees it now."""

    run: str
    incarnation: str
    state: RunState
    exit_code: int | None = None  # as a shell would show it: 128 + N for signal N
    detail: str = ""
    outcome: Mapping[str, Any] | None = None  # what the driver wrote beside its logs, if it did


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log of one submission."""

    incarnation: str
    stream: str  # "stdout", "stderr" or "spark"
    path: Path


class Runner(Protocol):
    """Starts, finds, watches and stops drivers in one kind of place."""

    backend: ClassVar[str]

    def place(self) -> Place:
        """Where a driver submitted now would run."""

    def reaches(self, place: Place) -> bool:
        """Whether this runner can see and stop drivers that were submitted at `place`."""

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver; raises SubmissionError when it cannot be started."""

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` that this backend knows, oldest first."""

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs at once, at the cost of about one."""

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`: TERM, wait, KILL, verify; raises KillError if anything is left."""

    def logs(self, run: str) -> list[LogFile]:
        """The logs of every submission of `run`, oldest first."""

    def cleanup(self, run: str) -> None:
        """Remove what `run` left at the backend (files, finished records); never a running driver's."""
