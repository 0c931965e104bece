"""The histories of all job names: workers record runs in them, people and programs read them."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future

from loguru import logger

from orchestrator.errors import CorruptHistory, HistoryNotFound
from orchestrator.history.ring import Ring, Run
from orchestrator.nodes import Nodes
from queues.bundle import commit_many
from queues.errors import Conflict, OutcomeUnknown, QueueError
from queues.names import check_id
from queues.operations import Create, Operation, Set
from queues.session import Session
from queues.session.multi_read import Found

_TRIES = 20  # each failure means that another worker was faster with a run of the same name
_PAUSE_SECONDS = 0.05  # at most; random, so that workers do not collide again

_Batch = dict[str, list[tuple[Run, "Future[None]"]]]  # by name


class History:
    """Rings of runs by name. Safe to use from several threads.

    Runs that several threads record at the same time are written together, in one multi.
    """

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._guard, self._writing = threading.Lock(), threading.Lock()
        self._waiting: _Batch = defaultdict(list)
        self._has_folder = False

    def read(self, name: str) -> Sequence[Run]:
        """The last runs of a name, the latest last; raises HistoryNotFound, CorruptHistory."""
        path = self._nodes.history(check_id(name))
        found = self._session.get(path)
        if found is None:
            raise HistoryNotFound(name)
        try:
            return Ring.decode(name, found[0]).runs
        except ValueError as error:
            raise CorruptHistory(name, path, str(error)) from error

    def record(self, name: str, run: Run) -> None:
        """Store a run in the ring of its name; the ring holds it once, however often it is recorded.

        Raises the errors of reads and writes, and OutcomeUnknown if other workers were faster every time.
        """
        outcome: Future[None] = Future()
        with self._guard:
            self._waiting[name].append((run, outcome))
        with self._writing:
            if not outcome.done():  # otherwise the thread before has written this run too
                with self._guard:
                    batch, self._waiting = self._waiting, defaultdict(list)
                self._write(batch)
        outcome.result()

    def _write(self, batch: _Batch) -> None:
        """Write all of them; each future gets its outcome."""
        try:
            for _ in range(_TRIES):
                batch = self._try_to_write(batch)
                if not batch:
                    return
                time.sleep(random.uniform(0, _PAUSE_SECONDS))  # noqa: S311 - not for security
            raise OutcomeUnknown(  # noqa: TRY301 - passed on below
                "other workers were faster every time to write the history of " + ", ".join(batch)
            )
        except BaseException as error:  # noqa: BLE001 - each waiting thread has to get its error
            _resolve(batch, error)

    def _try_to_write(self, batch: _Batch) -> _Batch:
        """Write once; returns the names for which another worker was faster."""
        if not self._has_folder:
            self._session.ensure_path(self._nodes.histories)
            self._has_folder = True
        names = list(batch)
        found = self._session.get_many([self._nodes.history(name) for name in names])
        changes = dict[str, Operation]()
        for name, node in zip(names, found, strict=True):
            before = self._ring(name, node)
            after = before
            for run, _ in batch[name]:
                after = after.with_run(run)
            if after is before:
                _resolve({name: batch[name]})
            elif node is None:
                changes[name] = Create(self._nodes.history(name), after.encode())
            else:
                changes[name] = Set(self._nodes.history(name), after.encode(), node[1].version)
        refusals = commit_many(self._session, [(change,) for change in changes.values()])
        left: _Batch = {}
        for name, refused in zip(changes, refusals, strict=True):
            if isinstance(refused, Conflict):  # or the reply to this multi was lost: the next read decides
                left[name] = batch[name]
                self._has_folder = False  # the folder may have been removed
            else:
                _resolve({name: batch[name]}, refused)
        return left

    def _ring(self, name: str, node: Found) -> Ring:
        if node is None:
            return Ring(name)
        try:
            return Ring.decode(name, node[0])
        except ValueError as error:
            logger.warning("{} is not a history and is replaced: {}", self._nodes.history(name), error)
            return Ring(name)


def _resolve(batch: _Batch, error: BaseException | QueueError | None = None) -> None:
    for runs in batch.values():
        for _, future in runs:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
