"""Slots of running jobs: of capped pools, and of names whose jobs are limited.

A slot is a persistent node that the multi of the intent creates and that of the verdict removes. So it is
taken for as long as the job runs, whichever worker holds it, and a cap is never exceeded.
"""

import math
import random
import time
from dataclasses import dataclass

from orchestrator.admission.pool_folders import PoolFolders
from orchestrator.model.job import JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from orchestrator.model.waiting import Waiting, at_cap, at_concurrency
from queues import (
    LOW_LANE_SUFFIX,
    Create,
    Delete,
    InvalidName,
    Layout,
    Pools,
    Session,
    check_id,
    decode,
    encode,
)

_WITHOUT_SLOT_SECONDS = 1.0  # maximum age of the number of jobs that run without a slot


@dataclass(frozen=True, slots=True)
class SlotReservation:
    """Slots for one job: their numbers, None without a limit, and the operations that create them."""

    slot: int | None
    name_slot: int | None
    operations: tuple[Create, ...]


class Slots:
    """Finds and frees slots. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes, pools: Pools) -> None:
        self._session, self._nodes, self._pools = session, nodes, pools
        self._folders = PoolFolders(session, nodes.slots)
        self.on_change = self._folders.on_change
        """Calls its argument when slots may have become free."""
        self._layout = Layout(nodes.root)
        self._slotless: dict[
            str, tuple[int, float]
        ] = {}  # pool -> jobs that run without a slot, and read when

    def free(self, pool: str) -> int | None:
        """An estimate of the free slots of a pool; None if its running jobs are not limited."""
        main = pool.removesuffix(LOW_LANE_SUFFIX)  # demoted jobs use slots of their pool
        cap = self._pools.limits(main, self._folders.wake)[0].cap
        if not cap:
            return None
        folder = self._folders.of(main)
        folder.refresh(urgent=True)
        return max(0, cap - len(folder.names) - self._without_slot(main))

    def _without_slot(self, main: str) -> int:
        """The number of jobs that have run since before the pool had a cap; they count against it."""
        count, read_at = self._slotless.get(main, (0, -math.inf))
        if time.monotonic() - read_at >= _WITHOUT_SLOT_SECONDS:
            # Both in one request, because a job that starts in between would count twice.
            lanes = [self._layout.queue(Queue.RUNNING, lane) for lane in (main, main + LOW_LANE_SUFFIX)]
            found = self._session.get_many([self._nodes.slots(main), *lanes])
            with_slot, *running = [0 if node is None else node[1].children for node in found]
            count = max(0, sum(running) - with_slot)
            self._slotless[main] = (count, time.monotonic())
        return count

    def take(
        self, pool: str, name: str, concurrency: int, *, owner: dict[str, object]
    ) -> SlotReservation | Waiting:
        """Slots for one job, or why there are none; `owner` is the document of their nodes.

        If another worker takes a slot first, ZooKeeper refuses the multi that creates the node.
        """
        main = pool.removesuffix(LOW_LANE_SUFFIX)
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
        return SlotReservation(slot, name_slot, tuple(operations))

    def name_capacity(self, name: str, concurrency: int) -> int:
        """The number of further jobs of this name that may run now."""
        return max(0, concurrency - len(self._session.children(self._nodes.name_slots(name)) or ()))

    def release(self, pool: str, state: JobState, run_key: str) -> list[Delete]:
        """The operations that free the slots of a job; a slot that is gone or another job's is left out."""
        paths = []
        if state.slot is not None:
            paths.append(self._nodes.slot(pool.removesuffix(LOW_LANE_SUFFIX), state.slot))
        if state.name_slot is not None:
            paths.append(self._nodes.name_slot(state.name, state.name_slot))
        found = [(path, self._session.get(path)) for path in paths]
        return [
            Delete(path, node[1].version)
            for path, node in found
            if node is not None and run_key.encode() in node[0]
        ]

    def _free(self, folder: str, limit: int, *, pool: str | None = None) -> tuple[int | None, int]:
        """The number of a free slot, None if there is none, and how many jobs run."""
        names = self._session.children(folder)
        if names is None:
            self._session.ensure_path(folder)
            names = []
        running = len(names) + (0 if pool is None else self._without_slot(pool))
        if running >= limit:  # or above it, after it was lowered
            return None, running
        taken = {int(name) for name in names if name.isdecimal()}
        free: list[int] = [number for number in range(limit) if number not in taken]
        return random.choice(free), running  # noqa: S311 - so that workers do not race for the same slot


def slot_owner(data: bytes) -> str:
    """The id of the job that a slot node names; empty for a node that names none."""
    try:
        return check_id(str(decode(data)["id"]))
    except (ValueError, KeyError, InvalidName):
        return ""
