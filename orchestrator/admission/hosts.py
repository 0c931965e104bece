"""Announcements: the workers, the leader and the consumers of pools, and the places that a worker reaches.

A job is best monitored by a worker of the host on which it runs.
"""

import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from orchestrator.config.tables import ALL_POOLS
from orchestrator.model.paths import Nodes
from queues import LOW_LANE_SUFFIX, ConsumerAnnouncement, NodeData, Session, decode
from spark_runner.protocol.process import current_boot_id
from spark_runner.runners.base import SubmissionPlace

_LOOK_SECONDS = 2.0  # workers rarely come and go, and many jobs may ask


@dataclass(frozen=True, slots=True)
class WorkerAnnouncement:
    """The ephemeral node of a worker, of the leader, or of a consumer."""

    name: str  # of the worker
    path: str
    document: Mapping[str, Any]
    created: int  # epoch milliseconds, by the ensemble's clock
    owner: int  # the session, 0 where none owns the node

    @classmethod
    def of(cls, name: str, path: str, found: NodeData | None) -> "WorkerAnnouncement | None":
        """The announcement in a node, None if there is none; its document is empty if it is unreadable."""
        if found is None:
            return None
        return cls(name, path, _document(found[0]), found[1].created, found[1].owner)

    def number(self, key: str) -> int:
        """An integer of the document, 0 where there is none."""
        value = self.document.get(key)
        return value if isinstance(value, int) else 0

    def text(self, key: str) -> str:
        """A text of the document, empty where there is none."""
        return str(self.document.get(key) or "")

    @property
    def jobs(self) -> tuple[str, ...]:
        """The ids of some of its running jobs."""
        named = self.document.get("jobs")
        return tuple(each for each in named if isinstance(each, str)) if isinstance(named, list) else ()

    @property
    def pools(self) -> Mapping[str, int] | None:
        """The pools that it serves with their weights, 0 where the weight of the pool applies; None = all."""
        named, weights = self.document.get("pools"), self.document.get("weights")
        if not isinstance(named, list):
            return None
        found = weights if isinstance(weights, dict) else {}
        return {str(pool): weight if isinstance(weight := found.get(pool), int) else 0 for pool in named}

    @property
    def refusal(self) -> str:
        """Why it accepts no new job; empty when it does."""
        refused = self.document.get("refuses")
        return str(refused.get("message") or "") if isinstance(refused, dict) else ""

    @property
    def is_draining(self) -> bool:
        """Whether it follows a request to drain."""
        return is_draining(self.document)


def _document(data: bytes) -> Mapping[str, Any]:
    try:
        return decode(data)
    except ValueError:
        return {}


def workers_of(session: Session, nodes: Nodes) -> list[WorkerAnnouncement]:
    """The announced workers, by name."""
    found = (
        WorkerAnnouncement.of(name, nodes.worker(name), node)
        for name, node in _inside(session, nodes.workers)
    )
    return [worker for worker in found if worker is not None]


def leader_of(session: Session, nodes: Nodes) -> WorkerAnnouncement | None:
    """The worker that leads."""
    found = session.get(nodes.leader)
    name = "" if found is None else str(_document(found[0]).get("worker", ""))
    return WorkerAnnouncement.of(name, nodes.leader, found)


def consumers_of(session: Session, folder: str, pools: Iterable[str]) -> dict[str, list[WorkerAnnouncement]]:
    """The consumers of each of these pools, with the names of their workers; `folder` holds their nodes."""
    consumers: dict[str, list[WorkerAnnouncement]] = {pool: [] for pool in pools}
    for name, node in _inside(session, folder):
        if node is None or (member := ConsumerAnnouncement.of(node)) is None:
            continue
        worker = str(_document(node[0]).get("worker", ""))
        announcement = WorkerAnnouncement.of(worker, f"{folder}/{name}", node)
        for pool, of_pool in consumers.items():
            if announcement is not None and member.serves(pool):
                of_pool.append(announcement)
    return consumers


def _inside(session: Session, folder: str) -> list[tuple[str, NodeData | None]]:
    names = sorted(session.children(folder) or ())
    return list(zip(names, session.get_many([f"{folder}/{name}" for name in names]), strict=True))


def announced(session: Session, nodes: Nodes) -> dict[str, Mapping[str, Any]]:
    """The document of each worker by its name; a node that holds none is left out."""
    workers: dict[str, Mapping[str, Any]] = {}
    for name, node in _inside(session, nodes.workers):
        with suppress(ValueError):  # a foreign node
            if node is not None:
                workers[name] = decode(node[0])
    return workers


def serves(worker: Mapping[str, Any], pool: str) -> bool:
    """Whether a worker announces that it takes jobs of this pool, or of its low lane."""
    pools = worker.get("pools")
    return pools is None or (isinstance(pools, list) and pool.removesuffix(LOW_LANE_SUFFIX) in pools)


def all_here(session: Session, nodes: Nodes, pool: str) -> bool:
    """Whether at least one worker serves a pool, and all that do are processes of this host."""
    here = (os.uname().nodename, current_boot_id())
    found = [
        (worker.get("host"), worker.get("boot"))
        for worker in announced(session, nodes).values()
        if serves(worker, pool)
    ]
    return bool(found) and all(each == here for each in found)


def is_draining(worker: Mapping[str, Any]) -> bool:
    """Whether a worker announces that it takes nothing more, on request of an operator."""
    return isinstance(worker.get("draining"), dict)


def reaches(worker: Mapping[str, Any], place: SubmissionPlace) -> bool:
    """Whether a worker announces that it can see and stop a driver at `place`."""
    announced_places = worker.get("places")
    places = map(SubmissionPlace.of, announced_places if isinstance(announced_places, list) else ())
    return any(each is not None and each.is_at(place) for each in places)


def sparks_of(workers: Iterable[WorkerAnnouncement], pool: str) -> dict[str, list[str]]:
    """The names of the workers that serve a pool by the version of Spark that they announce for its jobs."""
    found = dict[str, list[str]]()
    for worker in workers:
        versions = worker.document.get("sparks")
        if serves(worker.document, pool) and isinstance(versions, dict):
            main = pool.removesuffix(LOW_LANE_SUFFIX)
            if version := versions.get(main, versions.get(ALL_POOLS)):  # empty = unknown
                found.setdefault(str(version), []).append(worker.name)
    return found


class Hosts:
    """The announced workers by place, at most 2 s old. Thread-safe."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._guard = threading.Lock()
        self._workers: Collection[Mapping[str, Any]] = []
        self._read_at = float("-inf")

    def has_worker(self, place: SubmissionPlace, pool: str) -> bool:
        """Whether an announced worker serves this pool, reaches this place, and takes over its drivers."""
        return any(
            reaches(worker, place) and serves(worker, pool) and not is_draining(worker)
            for worker in self._recent()
        )

    def _recent(self) -> Collection[Mapping[str, Any]]:
        with self._guard:
            now = time.monotonic()
            if now - self._read_at >= _LOOK_SECONDS:
                self._workers, self._read_at = announced(self._session, self._nodes).values(), now
            return self._workers
