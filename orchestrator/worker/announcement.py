"""The announcement of a worker: an ephemeral node with its host, its limits and its running jobs."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from loguru import logger

from orchestrator.handlers.warnings import recordable_text
from orchestrator.loop import Loop
from orchestrator.model.paths import Nodes
from orchestrator.model.waiting import Waiting
from queues import (
    Conflict,
    Create,
    Delete,
    QueueError,
    Session,
    SessionState,
    Set,
    commit,
    commit_until_deadline,
    encode,
    timestamp,
)
from spark_runner.protocol.process import current_boot_id
from spark_runner.runners.base import SubmissionPlace

_REFRESH_SECONDS = 10.0  # operators read it: more writes would be load without a reader
_LOOK_SECONDS = 2.0  # `job wait` shows why no worker accepts a job: a change must be visible soon
_STOP_SECONDS = 0.5  # the session removes the node without an answer
_MAX_NAMED = 100  # jobs; the others are only counted


class Announcement:
    """Creates the node in each session, and writes it again when it has changed."""

    def __init__(
        self,
        session: Session,
        nodes: Nodes,
        name: str,
        *,
        slots: int,
        pools: Sequence[str] | None,
        places: Sequence[SubmissionPlace],
        sparks: Mapping[str, str] = MappingProxyType({}),
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
        self._sparks = dict(sparks)
        self._refresh_seconds = refresh_seconds
        self._since = timestamp()
        self._generation = -1
        self._written = b""
        self._written_refusal = ""  # the reason in `_written`
        self._refresh_at = 0.0  # monotonic
        self._guard = threading.Lock()
        self._loop = Loop("announcement", self._step, first=min(_LOOK_SECONDS, refresh_seconds))
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Create the node, and keep it up to date."""
        self.announce()
        self._session.on_change(self._loop.wake)
        self._loop.start()

    def stop(self) -> None:
        """Remove the node, so that no other worker leaves jobs to one that drains; never raises.

        Without an answer of ZooKeeper the end of the session removes it.
        """
        session = self._session
        if not self._loop.stop(_STOP_SECONDS) or session.state is not SessionState.CONNECTED:
            return
        if self._generation == session.generation:
            with contextlib.suppress(QueueError):
                commit_until_deadline(
                    session, [Delete(self._path)], time.monotonic() + _STOP_SECONDS, sent=False
                )

    def missing(self) -> str:
        """Why the node is missing; empty when it exists as far as this worker can see."""
        is_there = self._generation == self._session.generation
        return "" if is_there else "the worker is not announced in ZooKeeper"

    def announce(self) -> None:
        """Create the node, or write it when its content has changed."""
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
        except Conflict:  # our own after a lost reply, or of another program with the same name
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
            "places": self._places,  # where this worker can see and stop drivers
            "sparks": self._sparks,  # the version by pool; * = all other pools
            "running": len(running),
            "jobs": running[:_MAX_NAMED],
            # Why it accepts no new job, null when it does.
            "refuses": refused and {"reason": refused.reason, "message": recordable_text(refused.message)},
            "logs": recordable_text(self._log_trouble()),  # why its log records are not delivered
        }


def _version() -> str:
    try:
        return version("spark-job-orchestrator")
    except PackageNotFoundError:  # a checkout that was never installed
        return "unknown"
