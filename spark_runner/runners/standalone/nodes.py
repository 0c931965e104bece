"""An HTTP client of the nodes of a standalone cluster: their executors, and the executors' logs."""

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
