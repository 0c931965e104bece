"""Which places have a worker: what runs on a host is best followed there."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from orchestrator.nodes import Nodes
from queues.documents import decode
from queues.names import LOW
from queues.session import Session
from spark_runner.runners.base import Place

_LOOK_SECONDS = 2.0  # workers come and go seldom, and many jobs may ask


def reaches(worker: Mapping[str, Any], place: Place) -> bool:
    """Whether a worker says of itself that it can see and stop what runs at `place`."""
    told = worker.get("places")
    places = map(Place.of, told if isinstance(told, list) else ())
    return any(each is not None and each.is_at(place) for each in places)


class Hosts:
    """The announced workers by place, some seconds old at most. Thread-safe."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._guard = threading.Lock()
        self._workers: list[Mapping[str, Any]] = []
        self._looked_at = float("-inf")

    def has_worker(self, place: Place, pool: str) -> bool:
        """Whether a worker that serves this pool and reaches this place is announced."""
        main = pool.removesuffix(LOW)
        return any(
            reaches(worker, place) and (worker.get("pools") is None or main in worker["pools"])
            for worker in self._known()
        )

    def _known(self) -> list[Mapping[str, Any]]:
        with self._guard:
            now = time.monotonic()
            if now - self._looked_at >= _LOOK_SECONDS:
                self._workers, self._looked_at = self._look(), now
            return self._workers

    def _look(self) -> list[Mapping[str, Any]]:
        names = self._session.children(self._nodes.workers) or []
        found = self._session.get_many([self._nodes.worker(name) for name in names])
        workers: list[Mapping[str, Any]] = []
        for node in found:
            try:
                workers.append({} if node is None else decode(node[0]))
            except ValueError:
                continue  # somebody's note: it is no worker
        return workers
