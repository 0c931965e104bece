"""The announcement of a worker: an ephemeral node with its host, its limits and its running jobs."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from loguru import logger

from orchestrator.handlers.warnings import recordable_text
from orchestrator.loop import Loop
from orchestrator.model.act import Act
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


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker does now: slots used, jobs held, ids of those that run, and how many were adopted."""

    used: int
    held: int
    running: Sequence[str]
    adopted: int


class Announcement:
    """Creates the node in each session, and writes it again when it has changed."""

    def __init__(
        self,
        session: Session,
        nodes: Nodes,
        name: str,
        *,
        slots: int,
        pools: Mapping[str, int] | None,
        places: Sequence[SubmissionPlace],
        sparks: Mapping[str, str] = MappingProxyType({}),
        load: Callable[[], Load],
        draining: Callable[[], Act | None] | None = None,
        refused: Callable[[], Waiting | None] = lambda: None,
        log_trouble: Callable[[], str] = lambda: "",
        refresh_seconds: float = _REFRESH_SECONDS,
    ) -> None:
        self._session, self._path, self._folder = session, nodes.worker(name), nodes.workers
        self._name, self._slots, self._load, self._draining = name, slots, load, draining or (lambda: None)
        self._drains = draining is not None
        self._refused, self._log_trouble = refused, log_trouble
        self._pools = pools  # with weights; None = all
        self._places = [place.to_json() for place in places]
        self._sparks = dict(sparks)
        self._refresh_seconds = refresh_seconds
        self._since = timestamp()
        self._generation = -1
        self._written = b""
        self._written_refusal = ""  # the reason in `_written`
        self._written_drain: Act | None = None  # likewise
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

    def look(self) -> None:
        """Write the node soon, because something has changed."""
        self._loop.wake()

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
            generation, refused, draining = session.generation, self._refused(), self._draining()
            data = encode(self._document(refused, draining))
            if generation != self._generation or session.exists(self._path) is None:
                self._create(data)
            elif data != self._written:
                commit(session, [Set(self._path, data, -1)])
            self._generation, self._written = generation, data
            self._written_refusal = refused.reason if refused else ""
            self._written_drain = draining
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
        refused, draining = self._refused(), self._draining()
        is_news = (refused.reason if refused else "") != self._written_refusal
        # Who waits for the end of a drain sees the jobs that are left.
        if (
            is_news
            or draining is not None
            or draining is not self._written_drain
            or self._generation != self._session.generation
            or time.monotonic() >= self._refresh_at
        ):
            self.announce()
        return min(_LOOK_SECONDS, self._refresh_seconds)

    def _document(self, refused: Waiting | None, draining: Act | None) -> dict[str, Any]:
        load = self._load()
        return {
            "host": os.uname().nodename,
            "boot": current_boot_id(),
            "pid": os.getpid(),
            "session": f"{self._session.id:#x}",
            "version": _version(),
            "since": self._since,
            "slots": self._slots,
            "pools": None if self._pools is None else sorted(self._pools),
            "weights": self._pools or {},  # of turns, where they replace those of the pools
            "places": self._places,  # where this worker can see and stop drivers
            "sparks": self._sparks,  # the version by pool; * = all other pools
            "used": load.used,  # of the slots
            "held": load.held,
            "running": len(load.running),
            "adopted": load.adopted,  # of those that run: the drivers that another worker has started
            "jobs": load.running[:_MAX_NAMED],
            "drains": self._drains,  # whether it follows requests of operators to drain
            "draining": None if draining is None else draining.note(),  # the request that it follows
            # Why it accepts no new job, null when it does.
            "refuses": refused and {"reason": refused.reason, "message": recordable_text(refused.message)},
            "logs": recordable_text(self._log_trouble()),  # why its log records are not delivered
        }


@cache
def _version() -> str:
    try:
        return version("spark-job-orchestrator")
    except PackageNotFoundError:  # a checkout that was never installed
        return "unknown"
