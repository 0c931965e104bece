"""What every place that can run a driver offers: the protocols Backend and Runner, and their values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

from spark_runner.run_plan import PlanOutline


class RunState(StrEnum):
    """What a backend says about one submission of a run; never a verdict on the job."""

    RUNNING = "running"  # the driver, or what starts it, is there
    EXITED = "exited"  # it ended, and its exit code or what its backend says of it is known
    GONE = "gone"  # nothing of it is there, and nothing is known of how it ended
    UNKNOWN = "unknown"  # this host cannot tell


@dataclass(frozen=True, slots=True)
class Target:
    """Where Spark shall run, as a definition says it."""

    master: str = "local[*]"
    deploy_mode: str = "client"  # "client": the driver is on the worker's host; "cluster": on the cluster
    options: Mapping[str, str] = field(default_factory=dict)  # what only this kind of place knows

    @property
    def backend(self) -> str:
        """The name of the kind of place that serves this master."""
        return backend_of(self.master)


def backend_of(master: str) -> str:
    """The kind of place that serves a master, by the form of its name."""
    scheme = master.partition("://")[0].partition("[")[0]
    return {"spark": "standalone", "k8s": "kubernetes"}.get(scheme, scheme)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt was submitted: enough for another worker to know whether it can reach it.

    Of a driver on a worker's host that host is named, of one on a cluster the cluster.
    """

    backend: str
    host: str = ""
    boot: str = ""  # boot id of the host: a process id means nothing after a reboot
    store: str = ""  # id of the state directory: workers of one host may have several
    cluster: Mapping[str, str] = field(default_factory=dict)  # as its backend writes it; no secrets
    pid_namespace: str = ""  # of the host: in another one its processes cannot be seen

    def to_json(self) -> dict[str, Any]:
        """The form kept in the attempt node."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def of(cls, document: object) -> "Place | None":
        """The place in a node, None where somebody else has written something else."""
        if not isinstance(document, dict) or not isinstance(document.get("cluster", {}), dict):
            return None
        try:
            return cls(**document)
        except TypeError:
            return None

    def is_at(self, other: "Place") -> bool:
        """Whether who reaches one reaches the other: the same host in whatever boot, or any cluster.

        Two PID namespaces of one boot do not reach each other; one that is left empty is all of them.
        """
        namespaces = {self.pid_namespace, other.pid_namespace} - {""}
        if self.boot == other.boot and len(namespaces) > 1:
            return False
        return (self.backend, self.host, self.store) == (other.backend, other.host, other.store)

    @property
    def of_files(self) -> "Place":
        """The same for who wants the files of a run alone: these are seen from each PID namespace."""
        return replace(self, pid_namespace="")

    def __str__(self) -> str:
        cluster = " ".join(self.cluster.values())
        return " ".join(filter(None, (self.backend, cluster, f"host {self.host}" if self.host else "")))


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
    target: Target = field(default_factory=Target)
    conf: Mapping[str, str] = field(default_factory=dict)  # Spark properties
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()  # values of its settings that no log may show
    is_short: bool = False  # its start counts for more than what it computes
    is_warm: bool = False  # it may run in a JVM that others use too, where there is one

    @property
    def pool(self) -> str:
        """The pool of the job; empty for what is no job's."""
        return PlanOutline.of(self.plan).pool

    @property
    def directory(self) -> str:
        """The folder of the definition, which relative paths mean; empty where there is none."""
        return PlanOutline.of(self.plan).directory


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a submission ended, in the words of its backend: more than its exit code can tell."""

    error_class: str  # one of the classes that `retry.on` knows
    type: str  # the backend's own word, as OOMKilled
    message: str
    is_passing: bool = False  # before the driver began: another submission may have more luck


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission as its backend sees it now."""

    run: str
    incarnation: str
    state: RunState
    exit_code: int | None = None  # as a shell would show it: 128 + N for signal N
    detail: str = ""
    outcome: Mapping[str, Any] | None = None  # what the driver wrote beside its logs, if it did
    failure: Failure | None = None  # what the backend says of how it ended, if it does
    usage: Mapping[str, Any] | None = None  # what its host has measured of all its processes, if it has
    # False: nobody has seen its driver end. It is not listed (any more), its node is lost, or what has ended
    # only hands drivers over. Of a driver that is known to have begun nothing follows from that.
    is_end_observed: bool = True

    @property
    def may_run(self) -> bool:
        """Whether its driver runs, or nobody can say that it does not."""
        return self.state in {RunState.RUNNING, RunState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log of one submission; of a driver elsewhere a copy of what can be had of it by now."""

    incarnation: str
    stream: str  # "stdout", "stderr" or "spark"
    path: Path
    executor: str = ""  # Spark's number of it; empty = the driver
    is_mixed: bool = False  # what was printed and what Spark says are one, as in a pod


class Runner(Protocol):
    """Starts, finds, watches and stops drivers in one place: one host, or one cluster."""

    backend: ClassVar[str]

    def place(self) -> Place:
        """Where a driver submitted now would run; raises SubmissionError where none can."""

    def reaches(self, place: Place) -> bool:
        """Whether this runner can see and stop drivers that were submitted at `place`."""

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver; raises SubmissionError when it cannot be started."""

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` that this backend knows, oldest first; raises when it does not answer."""

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs at once, at the cost of about one; some seconds old at most."""

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`: TERM, wait, KILL, verify; raises KillError if anything is left."""

    def logs(self, run: str) -> list[LogFile]:
        """The logs of every submission of `run`, oldest first."""

    def cleanup(self, run: str) -> None:
        """Remove what `run` left at the backend (files, finished records); never a running driver's."""


class Backend(Protocol):
    """One kind of place, as YARN is one: has a runner for each host or cluster of the kind."""

    def runner_for(self, target: Target) -> Runner:
        """The runner that a definition asks for; raises RefusedSubmission where there can be none.

        Raises NotConfigured where this host does not know its cluster.
        """

    def runner_at(self, place: Place) -> Runner | None:
        """The runner that can see and stop what was submitted at `place`; None where none here can.

        The same object for equal places, so that all that it watches is asked for at once.
        """

    def places(self) -> list[Place]:
        """The places that it reaches, as a worker announces them; those of a cluster name no cluster."""
