"""Pages of the logs of an attempt: from the files that this host has, or through a worker that has them."""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from orchestrator.admission.hosts import announced, reaches
from orchestrator.driver_logs.attempt_runs import AttemptRun, no_files
from orchestrator.driver_logs.page_request import PageRefused, PageRequest, page_of
from orchestrator.driver_logs.run_reader import Cursor, LogPage, RunReader, of_executor
from orchestrator.logs.reading.query import LogQuery
from orchestrator.model.errors import LogsElsewhere, NoSuchAttempt
from orchestrator.model.paths import Nodes
from queues import Conflict, Create, Delete, Operation, QueueError, Session, commit
from spark_runner.runners.base import LogFile, Runner, SubmissionPlace

_PAGE_BYTES = 4 << 20  # in memory; each page reads its first chunk of a log again
_FOLLOW_SECONDS = 0.3
_COPY_SECONDS = 2.0  # the interval of log requests to a cluster
_HERE = "local"


class LogPages(Protocol):
    """Reads the next page of one attempt; raises LogsElsewhere, NoSuchAttempt."""

    def page(self, cursor: Cursor, *, flush: bool, wait: bool) -> LogPage:
        """The records behind `cursor`. `flush`: nothing follows. `wait`: a moment, if there is nothing."""
        ...


class OwnPages:
    """Reads the files of this host, or the copies that its runner makes of those on a cluster."""

    def __init__(
        self, found: AttemptRun, runner: Runner, state_dir: Path, *, query: LogQuery, executor: str
    ) -> None:
        self._found, self._runner, self._state_dir = found, runner, state_dir
        self._query, self._executor = query, executor
        self._asked, self._logs = float("-inf"), list[LogFile]()

    def page(self, cursor: Cursor, *, flush: bool, wait: bool) -> LogPage:
        """See `LogPages.page`."""
        if flush or time.monotonic() - self._asked >= (0 if self._runner.backend == _HERE else _COPY_SECONDS):
            self._logs = of_executor(self._runner.logs(self._found.run), self._executor)
            self._asked = time.monotonic()
        if not self._logs and flush and not cursor:
            raise NoSuchAttempt(no_files(self._found, self._executor))
        reader = RunReader(self._found.run, self._logs, self._state_dir)
        page = reader.page(cursor, self._query, flush=flush, max_bytes=_PAGE_BYTES)
        if wait and not page.records:
            time.sleep(_FOLLOW_SECONDS)
        return page


_WAIT_SECONDS = 2.0  # for new output at the worker, while its reader sees the end of the job
_ANSWER_SECONDS = 10.0  # until the workers are looked at again
_PATIENCE_SECONDS = 30.0  # a worker may be started again meanwhile


class RemotePages:
    """Asks a worker that can read the files, with one request at a time.

    `report` receives a message while it waits for such a worker.
    """

    def __init__(
        self,
        session: Session,
        nodes: Nodes,
        found: AttemptRun,
        request: PageRequest,
        report: Callable[[str], None],
    ) -> None:
        self._session, self._nodes, self._found = session, nodes, found
        self._request, self._report = request, report
        self._last = ""  # the path of the last request, which is removed with the next one

    def page(self, cursor: Cursor, *, flush: bool, wait: bool) -> LogPage:
        """See `LogPages.page`."""
        seconds = _WAIT_SECONDS if wait else 0.0
        request = self._request.model_copy(update={"cursor": dict(cursor), "flush": flush, "wait": seconds})
        deadline, is_reported = time.monotonic() + (_PATIENCE_SECONDS if cursor else 0), False
        while True:
            try:
                return self._ask(self._store(), request.encode())
            except PageRefused as error:
                raise NoSuchAttempt(str(error)) from error
            except LogsElsewhere as error:
                if time.monotonic() >= deadline:
                    raise
                if not is_reported:
                    self._report(f"{error}; waiting for a worker")
                is_reported = True
                time.sleep(_FOLLOW_SECONDS)

    def close(self) -> None:
        """Remove the last request; without an answer its session does."""
        with suppress(QueueError):
            if self._last:
                commit(self._session, [Delete(self._last)])

    def _store(self) -> str:
        """The state directory whose workers can read the files; raises LogsElsewhere."""
        place = self._found.place
        workers = announced(self._session, self._nodes).values()
        able = [worker for worker in workers if reaches(worker, place)]
        if not able:
            raise LogsElsewhere(f"{self._whose()} {_nobody(place)}")
        return place.store or next(filter(None, map(_store_of, able)), "")

    def _ask(self, store: str, data: bytes) -> LogPage:
        path = self._nodes.log_request(store, uuid.uuid4().hex)
        self._create(path, data)
        answer, wake = None, threading.Event()
        deadline = time.monotonic() + _ANSWER_SECONDS
        while answer is None and (left := deadline - time.monotonic()) > 0:
            found = self._session.get(path, wake.set, await_creation=False)
            if found is None:  # removed, because the worker was busy for a minute
                break
            answer = found[0] if found[1].version else None
            if answer is None:
                wake.wait(left)
                wake.clear()
        if answer is None:
            words = f"no worker has answered within {_ANSWER_SECONDS:g} s"
            raise LogsElsewhere(f"{self._whose()} are on {self._found.place}, and {words}; try again later")
        try:
            return page_of(answer)
        except ValueError as error:
            raise LogsElsewhere(
                f"{self._whose()} cannot be read: the reply of the worker: {error}"
            ) from error

    def _create(self, path: str, data: bytes) -> None:
        """Create the node of a request, and remove the one before it."""
        last, self._last = self._last, path
        create: list[Operation] = [Create(path, data, ephemeral=True)]
        for operations in ([*create, Delete(last)], create) if last else (create,):
            try:
                commit(self._session, operations)
            except Conflict as error:
                if isinstance(error.operation, Delete):
                    continue  # the worker has removed the last one
                if error.ambiguous:  # the name is unique: a lost reply of this multi
                    return
                words = "its workers have a version that serves no logs: update them"
                raise LogsElsewhere(f"{self._whose()} are on {self._found.place}, and {words}") from error
            return

    def _whose(self) -> str:
        return f"the logs of {self._found.job_id} attempt {self._found.number}"


def _nobody(place: SubmissionPlace) -> str:
    if place.host:
        return (
            f"are on host {place.host}, and no worker runs there with its state directory: "
            "start `orchestrator worker` there; with logs.url set, logs need no worker"
        )
    words = "no worker reaches it: start one that does; with logs.url set, logs need no worker"
    return f"are on {place}, and {words}"


def _store_of(worker: Mapping[str, object]) -> str:
    places = worker.get("places")
    found = map(SubmissionPlace.of, places if isinstance(places, list) else ())
    return next((place.store for place in found if place is not None and place.store), "")
