"""The histories of all names: noted by workers, read by people and programs."""

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

_TRIES = 20  # each is another worker that was faster with a run of the same name
_PAUSE_SECONDS = 0.05  # at most, so that workers do not run into each other again

_Noted = dict[str, list[tuple[Run, "Future[None]"]]]  # by name


class History:
    """Rings of runs by name. Safe to use from several threads.

    What several threads note at the same time is written together: one multi for all of them.
    """

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._guard, self._writing = threading.Lock(), threading.Lock()
        self._waiting: _Noted = defaultdict(list)
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

    def note(self, name: str, run: Run) -> None:
        """Put a run in the ring of its name, where it stands once however often it is noted.

        Raises what reads and writes raise, and OutcomeUnknown when others were always faster.
        """
        noted: Future[None] = Future()
        with self._guard:
            self._waiting[name].append((run, noted))
        with self._writing:
            if not noted.done():  # else whoever was in here before has written it, too
                with self._guard:
                    batch, self._waiting = self._waiting, defaultdict(list)
                self._write(batch)
        noted.result()

    def _write(self, batch: _Noted) -> None:
        """Write all of them; the outcome of each goes to its future."""
        try:
            for _ in range(_TRIES):
                batch = self._try_to_write(batch)
                if not batch:
                    return
                time.sleep(random.uniform(0, _PAUSE_SECONDS))  # noqa: S311 - not for security
            raise OutcomeUnknown("others were always faster to write the history of " + ", ".join(batch))  # noqa: TRY301 - told below
        except BaseException as error:  # noqa: BLE001 - whoever waits has to be told, whatever it is
            _settle(batch, error)

    def _try_to_write(self, batch: _Noted) -> _Noted:
        """What is left: the names at which others were faster."""
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
                _settle({name: batch[name]})
            elif node is None:
                changes[name] = Create(self._nodes.history(name), after.encode())
            else:
                changes[name] = Set(self._nodes.history(name), after.encode(), node[1].version)
        refusals = commit_many(self._session, [(change,) for change in changes.values()])
        left: _Noted = {}
        for name, refused in zip(changes, refusals, strict=True):
            if isinstance(refused, Conflict):  # or it is our own, and its reply was lost: the next read tells
                left[name] = batch[name]
                self._has_folder = False  # somebody may have removed it
            else:
                _settle({name: batch[name]}, refused)
        return left

    def _ring(self, name: str, node: Found) -> Ring:
        if node is None:
            return Ring(name)
        try:
            return Ring.decode(name, node[0])
        except ValueError as error:
            logger.warning("{} is begun anew, it was no history: {}", self._nodes.history(name), error)
            return Ring(name)


def _settle(batch: _Noted, error: BaseException | QueueError | None = None) -> None:
    for noted in batch.values():
        for _, future in noted:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
