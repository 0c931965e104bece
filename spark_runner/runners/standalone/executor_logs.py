"""Copies of the logs of executors on standalone nodes, taken while the nodes have them."""

import math
import shutil
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.logs.files import folder_lock
from spark_runner.protocol.errors import BackendUnreachable
from spark_runner.protocol.log_limit import OLDER, limit_log, read_cut
from spark_runner.runners.base import LogFile
from spark_runner.runners.http_json import ClusterHttp
from spark_runner.runners.run_directory import EXECUTOR, log_owner
from spark_runner.runners.standalone.api import StandaloneMasters
from spark_runner.runners.standalone.launch import is_application_of


class _Executor(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: int
    application: str = Field(alias="appid")


class _Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    running: list[_Executor] = Field([], alias="executors")
    ended: list[_Executor] = Field([], alias="finishedexecutors")


@dataclass(frozen=True, slots=True)
class ExecutorPlace:
    """The node of an executor that runs or has ended."""

    page: str  # of its node
    application: str
    application_name: str
    executor: int


class StandaloneNodes:
    """Sends requests to the leading master's nodes; methods raise BackendUnreachable if no master leads."""

    def __init__(self, masters: StandaloneMasters, http: ClusterHttp | None = None) -> None:
        self._masters = masters
        self._http = http or ClusterHttp()

    def executors(self) -> list[ExecutorPlace]:
        """All executors with logs on live nodes; a node that does not answer is left out."""
        snapshot = self._masters.snapshot()
        names = {found.id: found.name for found in (*snapshot.ended_applications, *snapshot.applications)}
        places = []
        for worker in snapshot.workers if names else ():
            if worker.is_alive:
                try:
                    node = _Node.model_validate(self._http.get(f"{worker.page}/json/").json())
                except (BackendUnreachable, ValidationError):
                    continue
                places += [
                    ExecutorPlace(worker.page, found.application, names[found.application], found.id)
                    for found in (*node.ended, *node.running)
                    if found.application in names
                ]
        return places

    def executor_log(self, place: ExecutorPlace, stream: str, offset: int, length: int) -> bytes:
        """The log of an executor from `offset` on; empty if its node no longer has it."""
        wanted = {"appId": place.application, "executorId": place.executor, "logType": stream}
        query = urlencode({**wanted, "offset": offset, "byteLength": length})
        reply = self._http.get(f"{place.page}/log/?{query}")
        return reply.body.partition(b"====\n")[2] if reply.is_good else b""


FOLDER = "standalone-logs"
_FRESH_SECONDS = 5.0  # runs that are copied together share one list of executors
_PIECE_BYTES = 1 << 20
_MOST_PIECES = 16  # of one log at a time, so that other logs get their turn
_STREAMS = ("stdout", "stderr")
_LOCK = ".lock"


class StandaloneExecutorLogs:
    """The copies, in folders `<run>/<incarnation>.executor-<number>/`; private, as their contents may be."""

    def __init__(self, masters: StandaloneMasters, state_dir: Path) -> None:
        self._nodes = StandaloneNodes(masters)
        self._folder = state_dir / FOLDER
        self._asked = -_FRESH_SECONDS  # monotonic
        self._places: Mapping[str, Sequence[ExecutorPlace]] = {}  # by the name of the application

    def copy(self, run: str, incarnation: str) -> list[LogFile]:
        """Copy the new parts, as far as the cluster answers, and return all copies so far."""
        try:
            for place in self._of_run(run):
                folder = self._folder / run / f"{incarnation}{EXECUTOR}{place.executor}"
                # A worker and a `job logs` may copy at the same time.
                with folder_lock(folder, name=_LOCK, seconds=math.inf):
                    for stream in _STREAMS:
                        self._copy(place, stream, folder / f"{stream}.log")
        except (BackendUnreachable, OSError):  # earlier copies remain
            self._asked = -_FRESH_SECONDS
        return self._files(run)

    def remove(self, run: str) -> None:
        """Remove the copies of a run."""
        shutil.rmtree(self._folder / run, ignore_errors=True)

    def _files(self, run: str) -> list[LogFile]:
        return [
            LogFile(*_identified(folder, stream, path))
            for folder in sorted((self._folder / run).glob(f"*{EXECUTOR}*"))
            for stream in _STREAMS
            for part in (OLDER, "")
            if (path := folder / f"{stream}.log{part}").exists()
        ]

    def _of_run(self, run: str) -> Sequence[ExecutorPlace]:
        now = time.monotonic()
        if now - self._asked >= _FRESH_SECONDS:
            found = defaultdict[str, list[ExecutorPlace]](list)
            for place in self._nodes.executors():
                found[place.application_name].append(place)
            self._places, self._asked = found, now
        return [
            place for name, places in self._places.items() if is_application_of(name, run) for place in places
        ]

    def _copy(self, place: ExecutorPlace, stream: str, path: Path) -> None:
        if not path.exists():  # a file without news keeps its time, by which readers know that it is quiet
            path.touch(mode=0o600)
        for _ in range(_MOST_PIECES):
            offset = read_cut(path).total + path.stat().st_size
            data = self._nodes.executor_log(place, stream, offset, _PIECE_BYTES)
            if not data:
                return
            with path.open("ab") as log:
                log.write(data)
            limit_log(path)


def _identified(folder: Path, stream: str, path: Path) -> tuple[str, str, Path, str]:
    incarnation, executor = log_owner(folder.name)
    return incarnation, stream, path, executor
