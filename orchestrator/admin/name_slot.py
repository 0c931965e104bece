"""Keeps jobs of a name from starting while an operator changes what they use."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.admission.slots import slot_owner
from orchestrator.model.errors import JobRunning
from orchestrator.model.paths import Nodes
from queues import Conflict, Create, Delete, QueueSet, check_id, commit, encode, timestamp


class NameSlots:
    """The slots of job names, for operators. Jobs that share a checkpoint have one slot."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._session, self._nodes = queue_set.session, Nodes(queue_set.layout.root)

    @contextmanager
    def without_runs(self, name: str) -> Iterator[None]:
        """While this is held, no job with a checkpoint starts under this name; raises JobRunning.

        The slot is ephemeral: it ends with this process.
        """
        folder = self._nodes.name_slots(check_id(name))
        self._session.ensure_path(folder)
        if taken := self._session.children(folder):
            raise JobRunning(name, self._owner(f"{folder}/{taken[0]}"))
        slot = self._nodes.name_slot(name, 0)
        # It names no job, so the leader leaves it alone.
        document = {"operator": os.uname().nodename, "process": os.getpid(), "at": timestamp()}
        try:
            commit(self._session, [Create(slot, encode(document), ephemeral=True)])
        except Conflict as error:
            raise JobRunning(name, self._owner(slot)) from error
        try:
            yield
        finally:
            commit(self._session, [Delete(slot, -1)])

    def _owner(self, path: str) -> str:
        found = self._session.get(path)
        return "" if found is None else slot_owner(found[0])
