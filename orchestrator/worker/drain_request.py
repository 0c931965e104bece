"""The request of an operator to drain this worker, which it watches in ZooKeeper."""

import contextlib
import time
from collections.abc import Callable

from loguru import logger

from orchestrator.loop import Loop
from orchestrator.model.act import Act
from orchestrator.model.paths import Nodes
from queues import Delete, QueueError, Session, SessionState, commit_until_deadline, decode

_RESCAN_SECONDS = 10.0  # a watch reports a request at once, unless it is lost
_STOP_SECONDS = 0.5  # the leader removes what is left


class DrainRequest:
    """Reads the request; `on_change` is called when one comes, and when it is withdrawn."""

    def __init__(self, session: Session, nodes: Nodes, worker: str, *, on_change: Callable[[], None]) -> None:
        self._session, self._path, self._worker = session, nodes.drain(worker), worker
        self._on_change = on_change
        self.act: Act | None = None  # the request in force
        self._loop = Loop("drain-request", self._look)
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Look for a request from now on."""
        self._session.on_change(self._loop.wake)
        self._loop.start()

    def stop(self) -> None:
        """Look no more."""
        self._loop.stop(_STOP_SECONDS)

    def remove(self) -> None:
        """Remove the request, which is fulfilled; never raises."""
        if self._session.state is SessionState.CONNECTED:
            with contextlib.suppress(QueueError):
                deadline = time.monotonic() + _STOP_SECONDS
                commit_until_deadline(self._session, [Delete(self._path, -1)], deadline, sent=False)

    def _look(self) -> float:
        if self._session.state is SessionState.CONNECTED:
            found = self._session.get(self._path, self._loop.wake)
            self._note(None if found is None else _act_in(found[0]))
        return _RESCAN_SECONDS

    def _note(self, act: Act | None) -> None:
        if act == self.act:
            return
        before, self.act = self.act, act
        if act is not None and before is None:
            by = f"{act.by} from host {act.host}" if act.host else act.by
            logger.warning("worker {} drains, as {} has asked: it takes nothing more", self._worker, by)
        elif act is None:
            logger.warning("worker {} drains no more: the request was withdrawn", self._worker)
        self._on_change()


def _act_in(data: bytes) -> Act:
    try:
        document = decode(data)
    except ValueError:  # zkCli writes any text; what counts is that the node exists
        document = {}
    return Act.noted(document, "drain") or Act(at="", by="another program", action="drain")
