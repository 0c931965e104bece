"""Which places have a worker: what runs on a host is best followed there."""

import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from orchestrator.nodes import Nodes
from queues.documents import decode
from queues.names import LOW
from queues.session import Session
from spark_runner.runners.base import SubmissionPlace

_LOOK_SECONDS = 2.0  # workers come and go seldom, and many jobs may ask


def announced(session: Session, nodes: Nodes) -> dict[str, Mapping[str, Any]]:
    """What each worker says of itself, by name; what is no worker's is left out."""
    names = session.children(nodes.workers) or []
    found = session.get_many([nodes.worker(name) for name in names])
    workers: dict[str, Mapping[str, Any]] = {}
    for name, node in zip(names, found, strict=True):
        with suppress(ValueError):  # somebody's note
            if node is not None:
                workers[name] = decode(node[0])
    return workers


def serves(worker: Mapping[str, Any], pool: str) -> bool:
    """Whether a worker says of itself that it takes jobs of this pool, or of its low lane."""
    told = worker.get("pools")
    return told is None or (isinstance(told, list) and pool.removesuffix(LOW) in told)


def reaches(worker: Mapping[str, Any], place: SubmissionPlace) -> bool:
    """Whether a worker says of itself that it can see and stop what runs at `place`."""
    told = worker.get("places")
    places = map(SubmissionPlace.of, told if isinstance(told, list) else ())
    return any(each is not None and each.is_at(place) for each in places)


class Hosts:
    """The announced workers by place, some seconds old at most. Thread-safe."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._guard = threading.Lock()
        self._workers: Collection[Mapping[str, Any]] = []
        self._looked_at = float("-inf")

    def has_worker(self, place: SubmissionPlace, pool: str) -> bool:
        """Whether a worker that serves this pool and reaches this place is announced."""
        return any(reaches(worker, place) and serves(worker, pool) for worker in self._known())

    def _known(self) -> Collection[Mapping[str, Any]]:
        with self._guard:
            now = time.monotonic()
            if now - self._looked_at >= _LOOK_SECONDS:
                self._workers, self._looked_at = announced(self._session, self._nodes).values(), now
            return self._workers
