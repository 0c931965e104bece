"""An HTTP client of the masters of one standalone cluster.

A master has two servers: its web pages, with its state as JSON (`/json/`), and the REST server that starts
and ends drivers. One of several masters leads; the others answer too, but have no state and do nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_runner.protocol.errors import BackendUnreachable, SubmissionError
from spark_runner.runners.http_json import ClusterHttp

_LEADING = "ALIVE"
_ALIVE = "ALIVE"
_CSRF_TOKEN = re.compile(r'name="csrfToken"\s+value="([^"]+)"')
_FOUND = 302  # the redirect after an accepted form
_CHECK_PAGES = "check that the master runs, and that `master` and `standalone.ui` of the definition are right"
_CHECK_REST = "set spark.master.rest.enabled on the masters, and check `standalone.rest` of the definition"


class DriverState(StrEnum):
    """The states of a driver in cluster mode, by the master's names."""

    SUBMITTED = "SUBMITTED"  # waits for a worker with enough capacity
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"  # with exit code 0
    RELAUNCHING = "RELAUNCHING"
    UNKNOWN = "UNKNOWN"  # the master has just become the leader
    KILLED = "KILLED"
    FAILED = "FAILED"  # with another exit code
    ERROR = "ERROR"  # not started, or lost with its node


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StandaloneDriver(_Record):
    """A driver in cluster mode; the master keeps neither its name nor its arguments."""

    id: str
    state: DriverState
    started_ms: int = Field(alias="starttime")  # when the master accepted it; epoch, the master's clock
    cores: int
    memory_mib: int = Field(alias="memory")
    worker: str = "None"


class StandaloneApplication(_Record):
    """An application. Its state is never a verdict: it is FINISHED for failed applications too."""

    id: str
    name: str
    state: str  # WAITING until it has an executor
    memory_mib: int = Field(alias="memoryperexecutor")


class StandaloneWorker(_Record):
    """A node of the cluster."""

    id: str
    state: str
    page: str = Field(alias="webuiaddress")
    cores: int
    cores_free: int = Field(alias="coresfree")
    memory_mib: int = Field(alias="memory")
    memory_free_mib: int = Field(alias="memoryfree")

    @property
    def is_alive(self) -> bool:
        """Whether the master receives its heartbeats."""
        return self.state == _ALIVE


class Snapshot(_Record):
    """The state of the leading master at one moment."""

    status: str
    workers: list[StandaloneWorker]
    applications: list[StandaloneApplication] = Field(alias="activeapps")
    ended_applications: list[StandaloneApplication] = Field([], alias="completedapps")
    active_drivers: list[StandaloneDriver] = Field(alias="activedrivers")
    completed_drivers: list[StandaloneDriver] = Field(alias="completeddrivers")

    @cached_property
    def drivers(self) -> Mapping[str, StandaloneDriver]:
        """The drivers that the master still lists, by id."""
        return {driver.id: driver for driver in (*self.completed_drivers, *self.active_drivers)}


class _Answer(_Record):
    """The reply of the REST server to any request."""

    action: str
    success: bool = False
    message: str = ""
    submission_id: str = Field("", alias="submissionId")
    driver_state: DriverState | None = Field(None, alias="driverState")


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """The state of one driver at the REST server."""

    state: DriverState | None  # None: not listed, no longer or not yet
    message: str = ""  # of the exception with which a worker failed to start it


@dataclass(frozen=True, slots=True)
class Addresses:
    """The two servers of one master, as URLs without a trailing slash."""

    page: str
    rest: str


class StandaloneMasters:
    """Sends requests to the leading master; all methods raise BackendUnreachable if none leads."""

    def __init__(self, masters: Sequence[Addresses], http: ClusterHttp | None = None) -> None:
        self._masters = list(masters)
        self._http = http or ClusterHttp()

    def snapshot(self) -> Snapshot:
        """The leader's present state, in one request."""
        return self._leader()[1]

    def create_driver(self, request: Mapping[str, Any]) -> str:
        """Submit a driver and return its id; raises SubmissionError if the leader refuses it.

        BackendUnreachable with `sent` means that the driver may exist nevertheless.
        """
        answer = self._rest("POST", "create", request)
        if not answer.success or not answer.submission_id:
            raise SubmissionError(f"the master refuses the driver: {_reason(answer.message)}")
        return answer.submission_id

    def driver_status(self, driver: str) -> DriverStatus:
        """The state of one driver; the master keeps the last 200 ended drivers, until it is cleared."""
        answer = self._rest("GET", f"status/{quote(driver)}")
        if not answer.success and answer.message:  # the form of a standby, which lists no driver
            raise BackendUnreachable(f"the master reports no state of {driver}: {_reason(answer.message)}")
        return DriverStatus(answer.driver_state, answer.message)

    def kill_driver(self, driver: str) -> None:
        """Ask the leader to end a driver, which takes a while; a missing driver is no error."""
        self._rest("POST", f"kill/{quote(driver)}")

    def kill_application(self, application: str) -> None:
        """Ask the leader to end an application, through the form on its web page."""
        page = self._leader()[0].page
        token = _CSRF_TOKEN.search(self._http.get(f"{page}/").text())
        fields = {"id": application, "terminate": "true"}
        if token:  # of recent releases; one token for all requests, until the master restarts
            fields["csrfToken"] = token[1]
        reply = self._http.post_form(f"{page}/app/kill/", fields)
        if reply.status != _FOUND:
            raise BackendUnreachable(
                f"{page} refuses to end {application}: {reply.status} (spark.ui.killEnabled must be true)",
                sent=True,
            )

    def driver_stderr(self, worker: StandaloneWorker, driver: str, length: int) -> str:
        """The last bytes of stderr of a driver's JVM, from its node."""
        query = urlencode({"driverId": driver, "logType": "stderr", "byteLength": length})
        reply = self._http.get(f"{worker.page}/log/?{query}")
        return reply.text().partition("====\n")[2] if reply.is_good else ""

    def _leader(self) -> tuple[Addresses, Snapshot]:
        troubles = []
        for master in self._masters:
            url = f"{master.page}/json/"
            try:
                snapshot = Snapshot.model_validate(self._http.get(url).json())
            except BackendUnreachable as error:
                troubles.append(str(error))
            except ValidationError as error:
                troubles.append(f"{url} does not answer like a master: {_wrong_fields(error)}")
            else:
                if snapshot.status == _LEADING:
                    return master, snapshot
                troubles.append(f"{url} is {snapshot.status}")
        raise BackendUnreachable(f"no master leads: {'; '.join(troubles)}; {_CHECK_PAGES}")

    def _rest(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> _Answer:
        url = f"{self._leader()[0].rest}/v1/submissions/{path}"
        try:
            reply = self._http.get(url) if method == "GET" else self._http.send(method, url, document)
        except BackendUnreachable as error:
            raise BackendUnreachable(f"{error}; {_CHECK_REST}", sent=error.sent) from error
        try:
            answer = _Answer.model_validate(reply.json())
        except ValidationError as error:
            raise BackendUnreachable(
                f"{url} does not answer like a master's REST server", sent=True
            ) from error
        if answer.action == "ErrorResponse":
            raise SubmissionError(f"{url} answers {reply.status}: {_reason(answer.message)}")
        return answer


def _reason(message: str) -> str:
    """The line of a message that gives the reason; a stack trace follows it."""
    first, _, rest = message.strip().partition("\n")
    line = rest.partition("\n")[0] if first.endswith(":") else first
    return line.strip() or "without a reason"


def _wrong_fields(error: ValidationError) -> str:
    """The invalid fields of a document."""
    return ", ".join(sorted({".".join(map(str, found["loc"])) or "all of it" for found in error.errors()}))
