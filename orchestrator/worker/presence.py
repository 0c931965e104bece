"""The node in which a worker says who and where it is, and what it runs."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from loguru import logger

from orchestrator.handlers.warnings import recordable
from orchestrator.loop import Loop
from orchestrator.models.waiting import Waiting
from orchestrator.nodes import Nodes
from queues.documents import encode, timestamp
from queues.errors import Conflict, QueueError
from queues.operations import Create, Delete, Set
from queues.session import Session, SessionState
from queues.transaction import commit, insist
from spark_runner.process import current_boot_id
from spark_runner.runners.base import SubmissionPlace

_REFRESH_SECONDS = 10.0  # for people to look at: more writes would be load without a reader
_LOOK_SECONDS = 2.0  # whether it has begun, or ceased, to take jobs: who waits for one asks why
_STOP_SECONDS = 0.5  # it waits for ZooKeeper then, and has nothing to say any more
_MAX_NAMED = 100  # jobs; the others are counted


class Presence:
    """An ephemeral that is made again in each session, and written again when it has changed."""

    def __init__(
        self,
        session: Session,
        nodes: Nodes,
        name: str,
        *,
        slots: int,
        pools: Sequence[str] | None,
        places: Sequence[SubmissionPlace],
        running: Callable[[], list[str]],
        refused: Callable[[], Waiting | None] = lambda: None,
        log_trouble: Callable[[], str] = lambda: "",
        refresh_seconds: float = _REFRESH_SECONDS,
    ) -> None:
        self._session, self._path, self._folder = session, nodes.worker(name), nodes.workers
        self._name, self._slots, self._running = name, slots, running
        self._refused, self._log_trouble = refused, log_trouble
        self._pools = pools  # None = all
        self._places = [place.to_json() for place in places]
        self._refresh_seconds = refresh_seconds
        self._since = timestamp()
        self._generation = -1
        self._written = b""
        self._written_refusal = ""  # the reason of it
        self._refresh_at = 0.0  # monotonic
        self._guard = threading.Lock()
        self._loop = Loop("presence", self._step, first=min(_LOOK_SECONDS, refresh_seconds))
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Announce the worker, and keep that true."""
        self.announce()
        self._session.on_change(self._loop.wake)
        self._loop.start()

    def stop(self) -> None:
        """Remove the node, so that nobody leaves jobs to a worker that drains; never raises.

        Without an answer it goes with the session.
        """
        session = self._session
        if not self._loop.stop(_STOP_SECONDS) or session.state is not SessionState.CONNECTED:
            return
        if self._generation == session.generation:
            with contextlib.suppress(QueueError):
                insist(session, [Delete(self._path)], time.monotonic() + _STOP_SECONDS, sent=False)

    def missing(self) -> str:
        """Why others do not see this worker, empty when they do as far as is known here."""
        is_there = self._generation == self._session.generation
        return "" if is_there else "the worker is not announced in ZooKeeper"

    def announce(self) -> None:
        """Make the node, or write it anew when something has changed."""
        with self._guard:
            session = self._session
            if session.state is not SessionState.CONNECTED:
                return
            generation, refused = session.generation, self._refused()
            data = encode(self._document(refused))
            if generation != self._generation or session.exists(self._path) is None:
                self._create(data)
            elif data != self._written:
                commit(session, [Set(self._path, data, -1)])
            self._generation, self._written = generation, data
            self._written_refusal = refused.reason if refused else ""
            self._refresh_at = time.monotonic() + self._refresh_seconds

    def _create(self, data: bytes) -> None:
        self._session.ensure_path(self._folder)
        try:
            commit(self._session, [Create(self._path, data, ephemeral=True)])
        except Conflict:  # our own, whose reply was lost, or that of another program with our name
            stat = self._session.exists(self._path)
            if stat is not None and stat.owner != self._session.id:
                logger.warning("another worker is announced as {}", self._name)

    def _step(self) -> float:
        refused = self._refused()
        is_news = (refused.reason if refused else "") != self._written_refusal
        if is_news or self._generation != self._session.generation or time.monotonic() >= self._refresh_at:
            self.announce()
        return min(_LOOK_SECONDS, self._refresh_seconds)

    def _document(self, refused: Waiting | None) -> dict[str, Any]:
        running = self._running()
        return {
            "host": os.uname().nodename,
            "boot": current_boot_id(),
            "pid": os.getpid(),
            "session": f"{self._session.id:#x}",
            "version": _version(),
            "since": self._since,
            "slots": self._slots,
            "pools": self._pools,
            "places": self._places,  # what runs there it can see and stop
            "running": len(running),
            "jobs": running[:_MAX_NAMED],
            # Why it takes no new job, null when it does.
            "refuses": refused and {"reason": refused.reason, "message": recordable(refused.message)},
            "logs": recordable(self._log_trouble()),  # why its log records are not where they should be
        }


def _version() -> str:
    try:
        return version("spark-job-orchestrator")
    except PackageNotFoundError:  # from a checkout that was never installed
        return "unknown"
