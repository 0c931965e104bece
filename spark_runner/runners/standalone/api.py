"""The masters of one standalone cluster, as they can be asked over HTTP.

A master has two servers: its pages, which tell its state as JSON (`/json/`), and the REST server that starts
and ends drivers. Of several masters one leads; the others answer too, but know and do nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_runner.errors import BackendUnreachable, SubmissionError
from spark_runner.runners.http_json import ClusterHttp

_LEADING = "ALIVE"
_ALIVE = "ALIVE"
_CSRF_TOKEN = re.compile(r'name="csrfToken"\s+value="([^"]+)"')
_FOUND = 302  # the page after a form that was accepted
_CHECK_PAGES = "see that the master runs, and that `master` and `standalone.ui` of the definition are right"
_CHECK_REST = "masters need spark.master.rest.enabled, and `standalone.rest` of the definition its address"


class DriverState(StrEnum):
    """The states of a driver in cluster mode, in the master's words."""

    SUBMITTED = "SUBMITTED"  # waits for a worker with room
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"  # with exit code 0
    RELAUNCHING = "RELAUNCHING"
    UNKNOWN = "UNKNOWN"  # the master has just taken over
    KILLED = "KILLED"
    FAILED = "FAILED"  # with another exit code
    ERROR = "ERROR"  # not started, or lost with its node


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Driver(_Record):
    """A driver in cluster mode; the master keeps neither its name nor its arguments."""

    id: str
    state: DriverState
    started_ms: int = Field(alias="starttime")  # when the master accepted it; epoch, the master's clock
    cores: int
    memory_mib: int = Field(alias="memory")
    worker: str = "None"


class Application(_Record):
    """An application. Its state is never a verdict: it is FINISHED also for those that failed."""

    id: str
    name: str
    state: str  # WAITING until it has an executor
    memory_mib: int = Field(alias="memoryperexecutor")


class Worker(_Record):
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
        """Whether the master hears of it."""
        return self.state == _ALIVE


class Snapshot(_Record):
    """All that the leading master knows in one moment."""

    status: str
    workers: list[Worker]
    applications: list[Application] = Field(alias="activeapps")
    ended_applications: list[Application] = Field([], alias="completedapps")
    active_drivers: list[Driver] = Field(alias="activedrivers")
    completed_drivers: list[Driver] = Field(alias="completeddrivers")

    @cached_property
    def drivers(self) -> Mapping[str, Driver]:
        """Those that it remembers, by id."""
        return {driver.id: driver for driver in (*self.completed_drivers, *self.active_drivers)}


class _Answer(_Record):
    """What the REST server says, whatever it was asked for."""

    action: str
    success: bool = False
    message: str = ""
    submission_id: str = Field("", alias="submissionId")
    driver_state: DriverState | None = Field(None, alias="driverState")


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """What the REST server knows of one driver."""

    state: DriverState | None  # None: nothing, any more or yet
    message: str = ""  # of the exception with which a worker failed to start it


@dataclass(frozen=True, slots=True)
class Addresses:
    """The two servers of one master, as URLs without a slash at their end."""

    page: str
    rest: str


class StandaloneMasters:
    """Asks whichever master leads; all methods raise BackendUnreachable when none does."""

    def __init__(self, masters: Sequence[Addresses], http: ClusterHttp | None = None) -> None:
        self._masters = list(masters)
        self._http = http or ClusterHttp()

    def snapshot(self) -> Snapshot:
        """What the leader knows now, in one request."""
        return self._leader()[1]

    def create_driver(self, request: Mapping[str, Any]) -> str:
        """Submit a driver and return its id; raises SubmissionError when the leader refuses.

        BackendUnreachable with `sent` means that the driver may be there all the same.
        """
        answer = self._rest("POST", "create", request)
        if not answer.success or not answer.submission_id:
            raise SubmissionError(f"the master refuses the driver: {_reason(answer.message)}")
        return answer.submission_id

    def driver_status(self, driver: str) -> DriverStatus:
        """The state of one driver; of those that ended the master keeps the last 200, until it is cleared."""
        answer = self._rest("GET", f"status/{quote(driver)}")
        if not answer.success and answer.message:  # as a standby says it: it knows nothing of any driver
            raise BackendUnreachable(f"the master tells nothing of {driver}: {_reason(answer.message)}")
        return DriverStatus(answer.driver_state, answer.message)

    def kill_driver(self, driver: str) -> None:
        """Ask the leader to end a driver, which takes a while; one that is not there is no error."""
        self._rest("POST", f"kill/{quote(driver)}")

    def kill_application(self, application: str) -> None:
        """Ask the leader to end an application, by the form of its page."""
        page = self._leader()[0].page
        token = _CSRF_TOKEN.search(self._http.get(f"{page}/").text())
        fields = {"id": application, "terminate": "true"}
        if token:  # since Spark 4.3; the token is the same for all, until the master starts again
            fields["csrfToken"] = token[1]
        reply = self._http.post_form(f"{page}/app/kill/", fields)
        if reply.status != _FOUND:
            raise BackendUnreachable(
                f"{page} does not end {application}: {reply.status} (spark.ui.killEnabled must be true)",
                sent=True,
            )

    def driver_stderr(self, worker: Worker, driver: str, length: int) -> str:
        """The last bytes of what a driver's JVM said, kept by its node."""
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
                troubles.append(f"{url} does not answer as a master does: {_strange(error)}")
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
                f"{url} does not answer as a master's REST server does", sent=True
            ) from error
        if answer.action == "ErrorResponse":
            raise SubmissionError(f"{url} answers {reply.status}: {_reason(answer.message)}")
        return answer


def _reason(message: str) -> str:
    """The line of a message that says why; a stack follows it."""
    first, _, rest = message.strip().partition("\n")
    line = rest.partition("\n")[0] if first.endswith(":") else first
    return line.strip() or "without a reason"


def _strange(error: ValidationError) -> str:
    """What in a document is not as it should be."""
    return ", ".join(sorted({".".join(map(str, found["loc"])) or "all of it" for found in error.errors()}))
