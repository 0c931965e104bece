"""Places of running jobs: of capped pools, and of names whose jobs are limited.

A place is a persistent node that is made in the intent and goes with the verdict, so that it is taken as long
as the job runs, whoever holds it, and a cap is never overshot.
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.models.job import JobState
from orchestrator.models.waiting import Waiting, at_cap, at_concurrency
from orchestrator.nodes import Nodes
from orchestrator.states import Queue
from queues.documents import encode
from queues.folder import WatchedFolder
from queues.names import LOW, Layout
from queues.operations import Create, Delete
from queues.pools import Pools
from queues.session import Session

_UNPLACED_SECONDS = 1.0  # how old the number of those that run without a place may be


@dataclass(frozen=True, slots=True)
class Places:
    """Places to take: their numbers, None where there is no limit, and what makes their nodes."""

    slot: int | None
    name_slot: int | None
    operations: tuple[Create, ...]


class Slots:
    """Finds free places and gives them back. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes, pools: Pools) -> None:
        self._session, self._nodes, self._pools = session, nodes, pools
        self._listeners: list[Callable[[], None]] = []
        self._folders: dict[str, WatchedFolder] = {}
        self._layout = Layout(nodes.root)
        self._unplaced: dict[str, tuple[int, float]] = {}  # pool -> how many run without a place, read when
        session.on_change(self._rearm)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when places may have become free."""
        self._listeners.append(listener)

    def _wake(self) -> None:
        for listener in self._listeners:
            listener()

    def _rearm(self) -> None:
        for folder in list(self._folders.values()):
            folder.changed = True  # the watches went with the connection

    def room(self, pool: str) -> int | None:
        """How many places of a pool seem to be free; None where its running jobs are not limited."""
        main = pool.removesuffix(LOW)  # demoted jobs take places of their pool
        cap = self._pools.limits(main, self._wake)[0].cap
        if not cap:
            return None
        folder = self._folders.get(main)
        if folder is None:
            path = self._nodes.slots(main)
            self._session.ensure_path(path)
            folder = self._folders[main] = WatchedFolder(self._session, path, self._wake)
        folder.refresh(urgent=True)
        return max(0, cap - len(folder.names) - self._without_place(main))

    def _without_place(self, main: str) -> int:
        """How many run in a pool since before it had a cap: they count, and new ones do not add to them."""
        count, read_at = self._unplaced.get(main, (0, -math.inf))
        if time.monotonic() - read_at >= _UNPLACED_SECONDS:
            # Both in one request: one that starts in between would count twice.
            lanes = [self._layout.queue(Queue.RUNNING, lane) for lane in (main, main + LOW)]
            found = self._session.get_many([self._nodes.slots(main), *lanes])
            placed, *running = [0 if node is None else node[1].children for node in found]
            count = max(0, sum(running) - placed)
            self._unplaced[main] = (count, time.monotonic())
        return count

    def take(self, pool: str, name: str, concurrency: int, *, owner: dict[str, object]) -> Places | Waiting:
        """Places for one job, or why there are none; `owner` is what their nodes say.

        Somebody may be faster: then the multi that makes the nodes is refused.
        """
        main = pool.removesuffix(LOW)
        cap, data = self._pools.limits(main)[0].cap, encode(owner)
        slot = name_slot = None
        operations = []
        if cap:
            slot, running = self._free(self._nodes.slots(main), cap, pool=main)
            if slot is None:
                return at_cap(main, running, cap)
            operations.append(Create(self._nodes.slot(main, slot), data))
        if concurrency:
            name_slot, running = self._free(self._nodes.name_slots(name), concurrency)
            if name_slot is None:
                return at_concurrency(name, running, concurrency)
            operations.append(Create(self._nodes.name_slot(name, name_slot), data))
        return Places(slot, name_slot, tuple(operations))

    def name_room(self, name: str, concurrency: int) -> int:
        """How many more jobs of this name may run now."""
        return max(0, concurrency - len(self._session.children(self._nodes.name_slots(name)) or ()))

    def release(self, pool: str, state: JobState, run_key: str) -> list[Delete]:
        """What gives the places of a job back; those that are not there, or another job's, are left alone."""
        paths = []
        if state.slot is not None:
            paths.append(self._nodes.slot(pool.removesuffix(LOW), state.slot))
        if state.name_slot is not None:
            paths.append(self._nodes.name_slot(state.name, state.name_slot))
        found = [(path, self._session.get(path)) for path in paths]
        return [
            Delete(path, node[1].version)
            for path, node in found
            if node is not None and run_key.encode() in node[0]
        ]

    def _free(self, folder: str, limit: int, *, pool: str | None = None) -> tuple[int | None, int]:
        """A place that nobody has, None when there is none, and how many run."""
        names = self._session.children(folder)
        if names is None:
            self._session.ensure_path(folder)
            names = []
        running = len(names) + (0 if pool is None else self._without_place(pool))
        if running >= limit:  # also those above a limit that was lowered
            return None, running
        taken = {int(name) for name in names if name.isdecimal()}
        free: list[int] = [place for place in range(limit) if place not in taken]
        return random.choice(free), running  # noqa: S311 - so that workers do not race for the same one
