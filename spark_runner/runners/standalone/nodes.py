"""The nodes of a standalone cluster, as they can be asked over HTTP: their executors, and what those said."""

from dataclasses import dataclass
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_runner.errors import BackendUnreachable
from spark_runner.runners.http_json import ClusterHttp
from spark_runner.runners.standalone.api import StandaloneMasters


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
    """Where an executor runs, or did."""

    page: str  # of its node
    application: str
    application_name: str
    executor: int


class Nodes:
    """Asks the nodes that the leading master knows; methods raise BackendUnreachable when none leads."""

    def __init__(self, masters: StandaloneMasters, http: ClusterHttp | None = None) -> None:
        self._masters = masters
        self._http = http or ClusterHttp()

    def executors(self) -> list[ExecutorPlace]:
        """All executors of which living nodes have logs; a node that does not answer is left out."""
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
        """What an executor has written from there on, kept by its node; nothing where that has it no more."""
        wanted = {"appId": place.application, "executorId": place.executor, "logType": stream}
        query = urlencode({**wanted, "offset": offset, "byteLength": length})
        reply = self._http.get(f"{place.page}/log/?{query}")
        return reply.body.partition(b"====\n")[2] if reply.is_good else b""
