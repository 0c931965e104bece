"""The interface of all backends: the protocols Backend and Runner, and their values."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

from spark_runner.protocol.run_plan import PlanOutline
from spark_runner.runners.installation import SparkInstallation


class RunState(StrEnum):
    """The state of one submission of a run at its backend; never a verdict on the job."""

    RUNNING = "running"  # the driver, or the process that starts it, exists
    EXITED = "exited"  # it ended, with a known exit code or a report of its backend
    GONE = "gone"  # nothing of it exists, and the cause of its end is unknown
    UNKNOWN = "unknown"  # this host cannot determine the state


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """The master and deploy mode of a definition: where Spark runs."""

    master: str = "local[*]"
    deploy_mode: str = "client"  # "client": the driver is on the worker's host; "cluster": on the cluster
    options: Mapping[str, str] = field(default_factory=dict)  # specific to the backend

    @property
    def backend(self) -> str:
        """The name of the backend that serves this master."""
        return backend_of(self.master)


def backend_of(master: str) -> str:
    """The name of the backend that serves a master, from the scheme of its URL."""
    scheme = master.partition("://")[0].partition("[")[0]
    return {"spark": "standalone", "k8s": "kubernetes"}.get(scheme, scheme)


@dataclass(frozen=True, slots=True)
class SubmissionPlace:
    """Where an attempt was submitted: enough for another worker to decide whether it can reach the driver.

    It names the host of a driver on a worker's host, and the cluster of a driver on a cluster.
    """

    backend: str
    host: str = ""
    boot: str = ""  # boot id of the host: a process id is meaningless after a reboot
    store: str = ""  # id of the state directory: workers of one host may have several
    cluster: Mapping[str, str] = field(default_factory=dict)  # in the backend's own form; no secrets
    pid_namespace: str = ""  # of the host: from another namespace the processes are not visible

    def to_json(self) -> dict[str, Any]:
        """The form stored in the attempt node."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def of(cls, document: object) -> "SubmissionPlace | None":
        """The place in a node; None if the node holds something else."""
        if not isinstance(document, dict) or not isinstance(document.get("cluster", {}), dict):
            return None
        try:
            return cls(**document)
        except TypeError:
            return None

    def is_at(self, other: "SubmissionPlace") -> bool:
        """Whether a worker that reaches one place reaches the other: the same host in any boot, or a cluster.

        Two PID namespaces of one boot do not reach each other; an empty one matches all of them.
        """
        namespaces = {self.pid_namespace, other.pid_namespace} - {""}
        if self.boot == other.boot and len(namespaces) > 1:
            return False
        return (self.backend, self.host, self.store) == (other.backend, other.host, other.store)

    @property
    def of_files(self) -> "SubmissionPlace":
        """The same place for access to a run's files only, which are visible from every PID namespace."""
        return replace(self, pid_namespace="")

    def __str__(self) -> str:
        cluster = " ".join(self.cluster.values())
        return " ".join(filter(None, (self.backend, cluster, f"host {self.host}" if self.host else "")))


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """Everything that a runner needs to start one driver.

    `run` is "<run key>-<attempt>", the only name outside the orchestrator. `incarnation` is the uuid of this
    one submission, which distinguishes it from a second submission of the same attempt.
    """

    run: str
    incarnation: str
    name: str  # for people: the application name
    plan: Mapping[str, Any]  # the JSON that the driver executes
    target: SparkTarget = field(default_factory=SparkTarget)
    conf: Mapping[str, str] = field(default_factory=dict)  # Spark properties
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()  # values of its settings that no log may show
    python_packages: tuple[str, ...] = ()  # of connectors and functions; they travel with the driver
    is_short: bool = False  # its start takes longer than its computation
    is_warm: bool = False  # it may run in a JVM that other jobs share, if there is one
    spark: SparkInstallation | None = None  # of its pool; None = that of the worker

    @property
    def python(self) -> str:
        """The Python of the driver and its Python workers on this host."""
        return (self.spark and self.spark.python) or sys.executable

    @property
    def needs_code(self) -> bool:
        """Whether its Python lacks the packages of the worker, even on this host."""
        return self.python != sys.executable

    @property
    def pool(self) -> str:
        """The pool of the job; empty for a request without a job."""
        return PlanOutline.of(self.plan).pool

    @property
    def directory(self) -> str:
        """The folder of the definition, to which relative paths refer; empty without one."""
        return PlanOutline.of(self.plan).directory


@dataclass(frozen=True, slots=True)
class Failure:
    """The cause of a submission's end according to its backend: more than the exit code shows."""

    error_class: str  # one of the classes of `retry.on`
    type: str  # the backend's own term, for example OOMKilled
    message: str
    is_passing: bool = False  # it failed before the driver started, and another submission may succeed
    short_of: str | None = None  # of class `memory`: one of SHORTAGES, where that is known


@dataclass(frozen=True, slots=True)
class Submission:
    """The present state of one submission at its backend."""

    run: str
    incarnation: str
    state: RunState
    exit_code: int | None = None  # as in a shell: 128 + N for signal N
    detail: str = ""
    outcome: Mapping[str, Any] | None = None  # the outcome file of the driver, if any
    failure: Failure | None = None  # the backend's cause of its end, if any
    usage: Mapping[str, Any] | None = None  # the host's measurements of all its processes, if any
    ended: str = ""  # when the driver ended, ISO 8601 in UTC, where its place has recorded it
    # False: the end of the driver was not observed. It is not listed (any more), its node is lost, or only
    # the spark-submit that submits it to a cluster has ended. A driver that has started may then still run.
    is_end_observed: bool = True

    @property
    def may_run(self) -> bool:
        """Whether its driver runs, or its state is unknown."""
        return self.state in {RunState.RUNNING, RunState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log of one submission; for a driver on another host a copy of the available part."""

    incarnation: str
    stream: str  # "stdout", "stderr" or "spark"
    path: Path
    executor: str = ""  # Spark's number of the executor; empty = the driver
    is_mixed: bool = False  # one file holds printed output and Spark's log, as in a pod


class Runner(Protocol):
    """Starts, finds, watches and stops drivers in one place: one host, or one cluster."""

    backend: ClassVar[str]

    def place(self) -> SubmissionPlace:
        """Where a driver submitted now would run; raises SubmissionError if none can."""

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether this runner can see and stop drivers that were submitted at `place`."""

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver; raises SubmissionError if it cannot be started."""

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` at this backend, oldest first; raises if the backend does not answer."""

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs at about the cost of one; the result is at most some seconds old."""

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`: TERM, wait, KILL, verify; raises KillError if anything remains."""

    def logs(self, run: str) -> list[LogFile]:
        """The logs of every submission of `run`, oldest first."""

    def cleanup(self, run: str) -> None:
        """Remove the files and finished records of `run` at the backend; never those of a running driver."""


class Backend(Protocol):
    """A kind of cluster manager, for example YARN, with a runner for each host or cluster of that kind."""

    def runner_for(self, target: SparkTarget) -> Runner:
        """The runner for a definition's target; raises RefusedSubmission if there can be none.

        Raises NotConfigured if this host has no configuration of the cluster.
        """

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The runner that can see and stop submissions at `place`; None if no runner here can.

        Equal places get the same object, so that one request covers all their runs.
        """

    def places(self) -> list[SubmissionPlace]:
        """The places that it reaches, as a worker announces them; a place on clusters names no cluster."""


def application_page(place: SubmissionPlace, application_id: str | None) -> str | None:
    """The URL at the master or the ResourceManager; None if no manager has a page for it.

    With several masters, it is the page at the first. A standby ResourceManager redirects to the active one.
    """
    if not application_id:
        return None
    match place.backend:
        case "standalone":
            return _first(place, "ui", f"/app/?appId={application_id}")
        case "yarn":
            return _first(place, "resource_manager", f"/cluster/app/{application_id}")
        case _:
            return None


def _first(place: SubmissionPlace, name: str, path: str) -> str | None:
    address = str(place.cluster.get(name, "")).partition(",")[0].rstrip("/")
    return f"{address}{path}" if address else None
