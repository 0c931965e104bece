"""A pod as the API describes it, and the state of the submission that follows from it."""

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from spark_runner.protocol.plain_file import parse_json
from spark_runner.runners.base import Failure, RunState, Submission

RUN_LABEL = "orchestrator-run"
INCARNATION_LABEL = "orchestrator-incarnation"
DRIVER_CONTAINER = "spark-kubernetes-driver"
"""Spark's name for the driver's container; if a pod template uses another, the first container counts."""

_ENDED = ("Succeeded", "Failed")
_CANNOT_START = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""Reasons for waiting that rarely pass without a change."""

_NODE_LOST = frozenset({"DeletionByPodGC", "DeletionByTaintManager", "NodeLost"})
_ENDED_BY_OTHERS = (None, 128 + signal.SIGTERM, 128 + signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Words:
    """A reason in one word, and a message."""

    reason: str
    message: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any] | None) -> "Words | None":
        """The reason and message of a condition or a state; None if it gives no reason."""
        reason = (document or {}).get("reason")
        return cls(reason, (document or {}).get("message", "")) if reason else None

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True, slots=True)
class Pod:
    """The relevant facts about the pod of a driver, or of one of its executors."""

    name: str
    uid: str
    run: str
    incarnation: str
    is_driver: bool  # else an executor of one
    executor: str  # Spark's number of the executor
    container: str
    created: str
    pending_since: float  # epoch: since it has a node, else since its creation
    phase: str
    exit_code: int | None  # of the driver's container
    ended: Words | None  # why the container ended; its message is the driver's outcome
    waiting: Words | None  # why the container does not run yet
    unscheduled: Words | None  # why the pod has no node
    disrupted: Words | None  # why the cluster removed the pod
    words: Words | None  # of the pod itself, for example Evicted
    is_deleted: bool  # gone, or its deletion has begun
    secrets: frozenset[str] = frozenset()  # the names of the secrets that it mounts
    ended_at: str = ""  # the end of the driver's container, ISO 8601
    is_gone: bool = False  # the API no longer lists it

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Pod":
        """The pod in a document of the API."""
        metadata, status = document["metadata"], document.get("status", {})
        labels = metadata.get("labels", {})
        name = _driver_container([each["name"] for each in document["spec"]["containers"]])
        states = {each["name"]: each.get("state", {}) for each in status.get("containerStatuses") or ()}
        state = states.get(name, {})
        conditions = {each["type"]: each for each in status.get("conditions") or ()}
        scheduled, disrupted = conditions.get("PodScheduled", {}), conditions.get("DisruptionTarget", {})
        since = scheduled.get("lastTransitionTime") or metadata["creationTimestamp"]
        terminated = state.get("terminated")
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            run=labels.get(RUN_LABEL, ""),
            incarnation=labels.get(INCARNATION_LABEL, ""),
            is_driver=labels.get("spark-role") == "driver",
            executor=labels.get("spark-exec-id", ""),
            container=name,
            created=metadata["creationTimestamp"],
            pending_since=datetime.fromisoformat(since).timestamp(),
            phase=status.get("phase", ""),
            exit_code=None if terminated is None else terminated.get("exitCode"),
            ended=Words.of(terminated),
            ended_at=str((terminated or {}).get("finishedAt") or ""),
            waiting=Words.of(state.get("waiting")),
            unscheduled=Words.of(scheduled) if scheduled.get("status") == "False" else None,
            disrupted=Words.of(disrupted) if disrupted.get("status") == "True" else None,
            words=Words.of(status),
            is_deleted="deletionTimestamp" in metadata,
            secrets=frozenset(
                volume["secret"]["secretName"]
                for volume in document["spec"].get("volumes") or ()
                if "secret" in volume
            ),
        )

    def gone(self) -> "Pod":
        """The same pod after the API has dropped it."""
        return replace(self, is_deleted=True, is_gone=True)

    @property
    def has_ended(self) -> bool:
        """Whether the driver's container has ended; other containers of the pod may still run."""
        return self.is_gone or self.phase in _ENDED or self.exit_code is not None

    def stuck_seconds(self) -> float:
        """How long the pod has had a node and could not start there, in seconds; 0 for all other pods."""
        is_stuck = self.phase == "Pending" and self.waiting and self.waiting.reason in _CANNOT_START
        return max(0.0, time.time() - self.pending_since) if is_stuck else 0.0

    def submission(self) -> Submission:
        """The submission in the state that the pod shows."""
        if not self.has_ended:
            state = RunState.UNKNOWN if self.phase == "Unknown" else RunState.RUNNING
            return Submission(self.run, self.incarnation, state, detail=self.trouble())
        failure = self._failure()
        if self.phase == "Succeeded" and self.exit_code is None:
            return Submission(self.run, self.incarnation, RunState.EXITED, 0)
        is_known = self.exit_code is not None or failure is not None
        state = RunState.EXITED if is_known else RunState.GONE
        return Submission(
            self.run,
            self.incarnation,
            state,
            self.exit_code,
            detail=self._past(),
            outcome=self._outcome(),
            failure=failure,
            ended=self.ended_at,
            is_end_observed=self.exit_code is not None or not self._is_node_lost(),
        )

    def trouble(self) -> str:
        """Why the pod does not run, if it is more than a step of its start; empty otherwise."""
        is_stuck = self.waiting and self.waiting.reason in _CANNOT_START
        words = self.unscheduled or (self.waiting if is_stuck else None)
        return f"pod {self.name}: {words}" if words and self.phase == "Pending" else ""

    def _is_node_lost(self) -> bool:
        """Whether the cluster gave the pod up because its node is silent; it may still run there."""
        return any(words is not None and words.reason in _NODE_LOST for words in (self.disrupted, self.words))

    def _outcome(self) -> dict[str, Any] | None:
        """The outcome that the driver wrote before its end; Kubernetes keeps 4 KiB for each container."""
        try:
            outcome = parse_json(self.ended.message) if self.ended else None
        except ValueError:
            return None
        return outcome if isinstance(outcome, dict) and "state" in outcome else None

    def _past(self) -> str:
        return f"pod {self.name} was deleted" if self.is_gone and self.exit_code is None else ""

    def _failure(self) -> Failure | None:
        """The cluster's own explanation of the end; None if the exit code suffices."""
        if self.exit_code == 0:
            return None
        if self.ended and self.ended.reason == "OOMKilled":
            message = f"pod {self.name} exceeded its memory limit, and the kernel ended it"
            return Failure("memory", self.ended.reason, message, short_of="driver.container")
        taken = self.disrupted or (self.words if self.phase in {"Failed", "Unknown"} else None)
        if taken is not None:
            message = f"the cluster removed pod {self.name}: {taken.message or taken.reason}"
            return Failure("infrastructure", taken.reason, message, is_passing=True)
        if self.ended and self.ended.reason in {"ContainerCannotRun", "StartError"}:
            message = f"pod {self.name} cannot run: {self.ended.message}"
            return Failure("submission", self.ended.reason, message)
        if self.is_deleted and self.exit_code in _ENDED_BY_OTHERS:
            return self._deletion()
        return None

    def _deletion(self) -> Failure:
        """Why the pod was deleted, if the cluster gives no reason: a worker or another client did it."""
        if self.waiting is not None and self.waiting.reason in _CANNOT_START:  # a worker deletes these
            message = f"pod {self.name} could not start: {self.waiting}"
            return Failure("submission", self.waiting.reason, message, is_passing=True)
        return Failure("killed", "PodDeleted", f"pod {self.name} was deleted by an outside request")


def _driver_container(names: list[str]) -> str:
    return DRIVER_CONTAINER if DRIVER_CONTAINER in names else names[0]
