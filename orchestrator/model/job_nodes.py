"""The job nodes: all nodes below the record of a job, which its removal deletes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.model.errors import AttemptOpen, StateConflict
from orchestrator.model.states import Queue
from queues import MAX_ASKED, Delete, Session, Stat, commit_many
from spark_runner.protocol.adjustment_node import ADJUSTMENT
from spark_runner.protocol.attempt import Attempt, attempt_number

_DEFINITION = "definition"
_KNOWN = (_DEFINITION, "plan", ADJUSTMENT)
_MAX_LISTED = 10_000  # parents at a time: a program can make as many nodes as ZooKeeper holds
_ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class JobNode:
    """One child of a record as it was read."""

    path: str
    data: bytes
    stat: Stat
    number: int | None  # of an attempt; None for another node
    has_driver: bool  # the session of a driver keeps `alive` below it

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def is_known(self) -> bool:
        """Whether an orchestrator makes nodes of this name."""
        return self.number is not None or self.name in _KNOWN

    def attempt(self) -> Attempt | None:
        """The attempt in this node; None for another node, and for one that cannot be read."""
        try:
            return None if self.number is None else Attempt.of(self.path, self.data, self.stat)
        except ValueError:
            return None

    def document(self) -> Mapping[str, Any]:
        """The JSON of the node, for an archive; text that is no JSON is under the key `unreadable`."""
        try:
            # NaN and Infinity as text: they are no JSON, and not every archive accepts them.
            document = json.loads(self.data, parse_constant=str)
        except (ValueError, RecursionError):
            document = None
        return document if isinstance(document, dict) else {"unreadable": self.data.decode(errors="replace")}


@dataclass(frozen=True, slots=True)
class JobNodes:
    """The children of a record: its attempts, the oldest first, then the definition and others."""

    nodes: tuple[JobNode, ...]

    @classmethod
    def read(cls, session: Session, record_path: str) -> "JobNodes":
        """Read the nodes; two requests, and one more for each attempt that has nodes below it."""
        names = sorted(session.children(record_path) or (), key=_in_order)
        paths = [f"{record_path}/{name}" for name in names]
        nodes = []
        for name, path, found in zip(names, paths, session.get_many(paths), strict=True):
            if found is not None:
                data, stat = found
                has_driver = stat.children > 0 and _shows_life(session, path)
                nodes.append(JobNode(path, data, stat, attempt_number(name), has_driver))
        return cls(tuple(nodes))

    # ------------------------------------------------------------------ contents
    @property
    def definition(self) -> Mapping[str, Any] | None:
        """The document of the definition."""
        return next((node.document() for node in self.nodes if node.name == _DEFINITION), None)

    @property
    def attempt_documents(self) -> dict[int, Mapping[str, Any]]:
        """The documents of the attempts by their numbers."""
        return {node.number: node.document() for node in self.nodes if node.number is not None}

    @property
    def last(self) -> Attempt | None:
        """The last attempt that can be read."""
        attempts = filter(None, (node.attempt() for node in reversed(self.nodes)))
        return next(attempts, None)

    # ------------------------------------------------------------------ drivers
    @property
    def driver_path(self) -> str:
        """The path of a node whose driver shows life; empty without one. Nodes of users do not count."""
        paths = [node.path for node in self.nodes if node.is_known and node.has_driver]
        return paths[-1] if paths else ""

    @property
    def in_use(self) -> str:
        """The node that a driver may still write, as operators read it; empty without one."""
        in_use = ""
        for node in self.nodes:
            attempt = node.attempt()
            # An attempt with damaged bytes has no state: then `alive` of its driver decides.
            if node.has_driver or (attempt is not None and attempt.state.is_open):
                in_use = node.name if node.number is None else f"attempt {node.number}"
        return in_use

    def check_closed(self, job_id: str, queue: str) -> None:
        """Raise AttemptOpen while a driver may be running: no driver may be left without a job."""
        if self.in_use:
            remedy = (
                f"bring it back first: `orchestrator queue replay {job_id}`, then `job kill {job_id}`"
                if queue == Queue.DEAD
                else f"stop it first: `orchestrator job kill {job_id}`, then `job wait {job_id}`"
            )
            raise AttemptOpen(job_id, self.in_use, remedy)

    # ------------------------------------------------------------------ removal
    @property
    def deletes(self) -> tuple[Delete, ...]:
        """The operations that remove all nodes as they were read, the oldest attempt first."""
        return tuple(Delete(node.path, node.stat.version) for node in self.nodes)

    @property
    def known_deletes(self) -> tuple[Delete, ...]:
        """The operations that remove the known nodes, whatever their version.

        An unknown node stays. Then the record cannot be removed, and an operator has to look.
        """
        return tuple(Delete(node.path) for node in self.nodes if node.is_known)

    def clear(self, session: Session) -> None:
        """Remove the nodes of drivers below all nodes; raises StateConflict for nodes that remain."""
        for node in self.nodes:
            if node.stat.children and not _clear(session, node.path):
                raise StateConflict(
                    f"{node.path} has nodes below it that this login cannot remove, or too many"
                )

    def clear_known(self, session: Session) -> str:
        """Remove the nodes of drivers below known nodes; the path of one that keeps some, else empty."""
        littered = (node.path for node in self.nodes if node.is_known and node.stat.children)
        return next((path for path in littered if not _clear(session, path)), "")


def _in_order(name: str) -> tuple[bool, int, str]:
    number = attempt_number(name)
    return number is None, number or 0, name


def _shows_life(session: Session, path: str) -> bool:
    """Whether the session of a driver keeps `alive` below this path.

    No other node proves it: the code of a job can make nodes, and they outlive its driver.
    """
    found = session.exists(f"{path}/alive")
    return found is not None and found.owner != 0


def _clear(session: Session, path: str) -> bool:
    """Remove the nodes that a driver has left below an ended attempt; whether none is left.

    A node stays when it has children and is closed to this session. Raises the errors of reads.
    """
    found, listed = [path], 0
    while listed < min(len(found), _MAX_LISTED):
        part = found[listed : listed + MAX_ASKED]
        for parent, names in zip(part, session.access.children(part), strict=True):
            found += [f"{parent}/{name}" for name in names]
        listed += len(part)
    commit_many(session, ((Delete(each, _ANY_VERSION),) for each in reversed(found[1:])))
    left = session.exists(path)
    return left is None or left.children == 0
