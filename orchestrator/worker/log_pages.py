"""Serves pages of the logs on this host to readers on other hosts, over ZooKeeper."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from loguru import logger

from orchestrator.driver_logs.attempt_runs import AttemptRun, find_run, no_files, secrets_of_job
from orchestrator.driver_logs.page_request import (
    MAX_LOGS,
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    PageRequest,
    page_data,
    refusal_data,
)
from orchestrator.driver_logs.run_reader import RunReader, of_executor
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.loop import Loop
from orchestrator.model.errors import NoSuchAttempt
from orchestrator.model.paths import Nodes
from queues import (
    AccessDenied,
    Conflict,
    CorruptRecord,
    Delete,
    InvalidName,
    ItemNotFound,
    QueueError,
    QueueSet,
    SessionState,
    Set,
    WatchedFolder,
    commit,
)
from spark_runner.runners.base import LogFile, Runner, SubmissionPlace
from spark_runner.runners.registry import Runners

_PAGE_BYTES = 256 * 1024  # of text; less is sent, because it is compressed
_REST = 2  # a page costs time of a processor: at most a third of it
_LOOK_SECONDS = 0.25  # between looks for new output that a reader waits for
_RESCAN_SECONDS = 30.0  # a watch may be lost; a look costs one read
_AWAY_SECONDS = 1.0
_MAX_REPLIES = 16  # that readers have not removed: 4 MiB in ZooKeeper
_OLD_SECONDS = 60.0  # a reader takes its reply at once, or is gone
_COPY_SECONDS = 2.0  # between two requests to a cluster for the logs of one run
_STUCK_SECONDS = 600.0  # a cluster may answer slowly
_HERE = "local"


class _State(Enum):
    WAITING = auto()
    REPLIED = auto()  # and its reader has not removed it yet
    DONE = auto()  # nothing is left to do for this worker


@dataclass(slots=True)
class _Pending:
    path: str
    since: float = field(default_factory=time.monotonic)  # first seen
    state: _State = _State.WAITING
    look_at: float = 0.0
    run: AttemptRun | None = None  # once it was found


class LogPages:
    """Answers requests for the logs of attempts whose files this worker can read.

    A request names a job and an attempt. Which files are read follows from the record of the job, so no
    request reaches any other file. Without requests, the loop waits for its watch.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        nodes: Nodes,
        runners: Runners,
        places: Iterable[SubmissionPlace],
        state_dir: Path,
    ) -> None:
        self._set, self._session, self._runners = queue_set, queue_set.session, runners
        self._state_dir = state_dir
        self._loop = Loop("log-pages", self.step, stuck_after=_STUCK_SECONDS)
        stores = sorted({place.store for place in places if place.store})
        self._folders = [
            WatchedFolder(self._session, nodes.log_requests_of(store), self._loop.wake) for store in stores
        ]
        self._connection = -1
        self._rescan_at = 0.0
        self._pending = dict[str, _Pending]()  # in the order of their arrival
        self._copied = dict[str, tuple[float, list[LogFile]]]()
        self.trouble = self._loop.trouble

    def start(self) -> None:
        """Start the loop."""
        self._session.on_change(self._loop.wake)
        self._loop.start()

    def stop(self) -> None:
        """End the loop; other workers of the state directory answer what is left."""
        self._loop.stop()

    def step(self) -> float:
        """Answer one request; returns the seconds until the next look."""
        if self._session.state is not SessionState.CONNECTED:
            return _AWAY_SECONDS
        self._look()
        started = time.monotonic()
        for pending in list(self._pending.values()):
            if pending.state is not _State.DONE and started - pending.since > _OLD_SECONDS:
                self._remove(pending)
        states = [pending.state for pending in self._pending.values()]
        replies = states.count(_State.REPLIED)
        waiting = [each for each in self._pending.values() if each.state is _State.WAITING]
        if not waiting:
            # A folder that has changed may have to rest before it is listed.
            return min([_RESCAN_SECONDS, *(folder.rest_left(urgent=True) for folder in self._folders)])
        if replies < _MAX_REPLIES:
            pending = min(waiting, key=lambda each: each.look_at)
            if pending.look_at <= started:
                self._answer(pending)
                return _REST * (time.monotonic() - started)
        return _LOOK_SECONDS

    # ------------------------------------------------------------------ requests
    def _look(self) -> None:
        now = time.monotonic()
        if self._connection != self._session.connections or now >= self._rescan_at:
            self._connection, self._rescan_at = self._session.connections, now + _RESCAN_SECONDS
            for folder in self._folders:
                stat = self._session.exists(folder.path)
                if stat is None:
                    self._session.ensure_path(folder.path)
                folder.changed = True
        there = set[str]()
        for folder in self._folders:
            folder.refresh(urgent=True)
            there |= {f"{folder.path}/{name}" for name in folder.names}
        for gone in self._pending.keys() - there:
            del self._pending[gone]
        for path in sorted(there - self._pending.keys()):
            self._pending[path] = _Pending(path)

    def _remove(self, pending: _Pending) -> None:
        pending.state = _State.DONE  # tried once: a node with children stays
        try:
            commit(self._session, [Delete(pending.path)])
        except (Conflict, AccessDenied) as error:
            logger.debug("the request {} is not removed: {}", pending.path, error)

    def _answer(self, pending: _Pending) -> None:
        pending.look_at = time.monotonic() + _LOOK_SECONDS  # also if it fails: the next request is not its
        try:
            found = self._session.get(pending.path, await_creation=False)
            if found is None or found[1].version:  # gone, or another worker of this host was faster
                pending.state = _State.DONE
                return
            reply = self._reply(pending, found[0])
            if reply is not None:
                commit(self._session, [Set(pending.path, reply, 0)])
                pending.state = _State.REPLIED
        except (Conflict, AccessDenied):  # its reader is gone or has an answer, or has closed the node
            pending.state = _State.DONE

    def _reply(self, pending: _Pending, data: bytes) -> bytes | None:
        """The reply to a request; None to look again later."""
        try:
            request = PageRequest.decode(data[: MAX_REQUEST_BYTES + 1])
            query = request.query()
        except ValueError as error:
            return refusal_data(f"the worker does not understand the request: {error}")
        try:
            if pending.run is None:
                pending.run = self._find(request)
            return self._page(pending, request, query)
        except ItemNotFound:
            return refusal_data(f"there is no job {request.job!r} any more")
        except (NoSuchAttempt, CorruptRecord, InvalidName) as error:
            return refusal_data(str(error))
        except QueueError:
            raise
        except Exception as error:  # noqa: BLE001 - a library of a backend may raise any error
            logger.warning("the logs of {} cannot be read: {}", request.job, error)
            return refusal_data(f"the logs cannot be read: {REDACTOR.mask(str(error))}")

    def _find(self, request: PageRequest) -> AttemptRun:
        """The run of the attempt; masks the secrets of its job, which another worker may have sent."""
        layout = self._set.layout
        found = find_run(self._session, layout, self._set.get(request.job), request.attempt)
        REDACTOR.add_of_job(secrets_of_job(self._session, layout, request.job))
        return found

    def _page(self, pending: _Pending, request: PageRequest, query: LogQuery) -> bytes | None:
        found = pending.run
        runner = None if found is None else self._runners.at(found.place)
        if found is None or runner is None:  # perhaps another worker of this host reaches it
            return None
        files = self._files(runner, found.run, fresh=request.flush)
        logs = of_executor(files, request.executor)[:MAX_LOGS]
        if not logs and request.flush:
            raise NoSuchAttempt(no_files(found, request.executor))
        reader, size = RunReader(found.run, logs, self._state_dir), _PAGE_BYTES
        while True:
            page = reader.page(request.cursor, query, flush=request.flush, max_bytes=size)
            is_early = time.monotonic() - pending.since < request.wait
            if not page.records and not page.is_full and not request.flush and is_early:
                return None
            reply = page_data(page)
            if len(reply) <= MAX_REPLY_BYTES or size <= 1:
                return reply
            size //= 2

    # ------------------------------------------------------------------ files
    def _files(self, runner: Runner, run: str, *, fresh: bool) -> list[LogFile]:
        if runner.backend == _HERE:
            return runner.logs(run)
        now = time.monotonic()
        asked, files = self._copied.get(run, (-math.inf, []))
        if fresh or now - asked >= _COPY_SECONDS:
            files = runner.logs(run)
            self._copied = {key: each for key, each in self._copied.items() if now - each[0] < _OLD_SECONDS}
            self._copied[run] = time.monotonic(), files
        return files
