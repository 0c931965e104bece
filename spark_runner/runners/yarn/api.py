"""The web services of YARN's ResourceManagers: which applications there are, and their end.

Source: Hadoop's "ResourceManager REST API's" and "ResourceManager High Availability".
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from spark_runner.errors import BackendUnreachable, KillError
from spark_runner.runners.http_json import ClusterHttp, ClusterReply

URLS = "resource_manager"  # in a Place: the addresses of all ResourceManagers of the cluster
_TAGS_PER_REQUEST = 50  # a URL of about 4 kB; servers take 8
_OK, _ACCEPTED, _MOVED, _UNAUTHORIZED, _NOT_FOUND = 200, 202, 307, 401, 404
_STANDBY = re.compile(r"this is standby RM|can ?not find any active RM", re.IGNORECASE)
_REFRESH = re.compile(r"url=(\S+)", re.IGNORECASE)
_SHOWN_CHARACTERS = 200
_CHECK = "see that it runs, and that yarn-site.xml in HADOOP_CONF_DIR of the worker names its web address"


@dataclass(frozen=True, slots=True)
class Application:
    """One application as the ResourceManager sees it now."""

    id: str
    state: str  # NEW, NEW_SAVING, SUBMITTED, ACCEPTED, RUNNING, FINISHED, FAILED or KILLED
    final_status: str  # UNDEFINED, SUCCEEDED, FAILED or KILLED: what the application says of itself
    diagnostics: str
    tags: frozenset[str]
    started_ms: int
    master_logs: str = ""  # page of the logs of its first container

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Application":
        """From one element of a reply; raises BackendUnreachable where it is none."""
        try:
            return cls(
                id=str(document["id"]),
                state=str(document["state"]),
                final_status=str(document["finalStatus"]),
                diagnostics=str(document.get("diagnostics") or ""),
                tags=frozenset(filter(None, str(document.get("applicationTags") or "").split(","))),
                started_ms=int(document["startedTime"]),
                master_logs=str(document.get("amContainerLogs") or ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BackendUnreachable(
                f"the ResourceManager tells of no application: {document!r:.200}"
            ) from error

    @property
    def has_ended(self) -> bool:
        """Whether it has, in whatever way; a state that is new to us may be of one that runs."""
        return self.state in {"FINISHED", "FAILED", "KILLED"}


@dataclass(frozen=True, slots=True)
class Container:
    """One container, and the web address of the node where it is."""

    id: str
    node: str

    @classmethod
    def of_page(cls, url: str) -> "Container | None":
        """From the address of its logs, None where that is none."""
        found = re.fullmatch(r"(https?://[^/]+)/.*/(container_\w+)(/.*)?", url)
        return cls(found[2], found[1]) if found else None


class ResourceManager:
    """The ResourceManagers of one cluster, of which one is active; `user` is whose requests these are."""

    def __init__(self, urls: Sequence[str], *, user: str) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._user = user
        self._http = ClusterHttp()
        self._lock = threading.Lock()
        self.place = {URLS: ",".join(self._urls)}  # the same, whichever is active

    def applications(self, tags: Sequence[str]) -> list[Application]:
        """Every application with any of these tags, oldest first; raises BackendUnreachable."""
        found: dict[str, Application] = {}
        for start in range(0, len(tags), _TAGS_PER_REQUEST):
            # YARN keeps tags in lower case, and compares them as they are given.
            some = ",".join(tags[start : start + _TAGS_PER_REQUEST]).lower()
            reply = self._get("/ws/v1/cluster/apps", applicationTags=some, deSelects="resourceRequests")
            for element in _elements(reply.json(), "apps", "app"):
                application = Application.of(element)
                found[application.id] = application
        return sorted(found.values(), key=lambda application: (application.started_ms, application.id))

    def containers(self, application: Application) -> list[Container]:
        """Its containers that run; raises BackendUnreachable."""
        path = f"/ws/v1/cluster/apps/{application.id}/appattempts"
        found = []
        for attempt in _elements(self._get(path).json(), "appAttempts", "appAttempt"):
            reply = self._ask("GET", f"{path}/{attempt.get('appAttemptId')}/containers")
            for element in _containers(reply.json()) if reply.status == _OK else []:
                if not element.get("containerId"):  # how Hadoop says that there is none yet
                    continue
                node = str(element.get("nodeHttpAddress") or "")
                node = node if "://" in node else f"http://{node}"
                found.append(Container(str(element["containerId"]), node.rstrip("/")))
        return found

    def kill(self, application: Application) -> None:
        """Order its end, which comes some time after; raises BackendUnreachable, KillError."""
        path = f"/ws/v1/cluster/apps/{application.id}/state"
        reply = self._ask("PUT", path, {"state": "KILLED"})
        if reply.status not in {_OK, _ACCEPTED, _NOT_FOUND}:
            raise KillError(
                f"YARN does not end {application.id} for user {self._user}: {reply.status} {_words(reply)}"
            )

    def is_running(self, container: Container) -> bool:
        """Whether its node says that it runs; a node that does not answer says nothing."""
        try:
            reply = self._http.get(f"{container.node}/ws/v1/node/containers/{container.id}")
            states = (
                {element.get("state") for element in _containers(reply.json())} if reply.is_good else set()
            )
        except BackendUnreachable:
            return False
        return "RUNNING" in states

    def log(self, container: Container, name: str, last_bytes: int) -> bytes | None:
        """The end of one file of its logs, None where its node has none; raises BackendUnreachable."""
        query = urlencode({"size": -last_bytes, "user.name": self._user})
        reply = self._http.get(f"{container.node}/ws/v1/node/containers/{container.id}/logs/{name}?{query}")
        return _log_contents(reply.body, name) if reply.status == _OK else None

    def log_sizes(self, container: Container) -> dict[str, int]:
        """How long the files of its logs are, as its node says; raises BackendUnreachable."""
        query = urlencode({"user.name": self._user})
        reply = self._http.get(f"{container.node}/ws/v1/node/containers/{container.id}/logs?{query}")
        return _sizes(reply.json()) if reply.status == _OK else {}

    def _get(self, path: str, **fields: str) -> ClusterReply:
        reply = self._ask("GET", path, **fields)
        if reply.status != _OK:
            raise BackendUnreachable(f"{reply.url.partition('?')[0]} answers {reply.status}: {_words(reply)}")
        return reply

    def _ask(self, method: str, path: str, document: Any = None, **fields: str) -> ClusterReply:
        """The answer of the active one, who is asked first the next time."""
        query = urlencode({**fields, "user.name": self._user})
        troubles: list[str] = []
        redirects: list[str] = []
        for url in self._candidates(redirects):
            asked = f"{url}{path}?{query}"
            try:
                reply = self._http.get(asked) if method == "GET" else self._http.send(method, asked, document)
            except BackendUnreachable as error:
                troubles.append(str(error))
                continue
            headers = {name.lower(): value for name, value in reply.headers.items()}
            if reply.status == _UNAUTHORIZED and "negotiate" in headers.get("www-authenticate", "").lower():
                raise BackendUnreachable(f"{url} wants Kerberos (SPNEGO), which is not supported")
            if reply.status == _MOVED or "refresh" in headers or _STANDBY.search(_words(reply)):
                troubles.append(f"{url} is on standby")
                redirects += _redirect(headers)
                continue
            self._prefer(url)
            return reply
        raise BackendUnreachable(f"no active ResourceManager: {'; '.join(troubles)}; {_CHECK}")

    def _candidates(self, redirects: Sequence[str]) -> Iterator[str]:
        with self._lock:
            known = list(self._urls)
        yield from known
        # Who is on standby may know an active one that the configuration does not name.
        yield from [url for url in redirects[:1] if url not in known]

    def _prefer(self, url: str) -> None:
        with self._lock:
            if url in self._urls:
                self._urls.remove(url)
                self._urls.insert(0, url)


def _elements(document: Any, outer: str, inner: str) -> list[Mapping[str, Any]]:
    """The list in a reply, of which Hadoop leaves out what is empty."""
    if not isinstance(document, dict) or outer not in document:
        raise BackendUnreachable(f"the ResourceManager answers without {outer!r}: {document!r:.200}")
    elements = (document[outer] or {}).get(inner) or []
    return list(elements) if isinstance(elements, list) else [elements]


def _containers(document: Any) -> list[Mapping[str, Any]]:
    """Here the outer names differ between releases of Hadoop, or are missing."""
    while isinstance(document, dict) and len(document) == 1:
        (document,) = document.values()
    if isinstance(document, dict):
        return [document]
    return document if isinstance(document, list) else []


def _sizes(document: Any) -> dict[str, int]:
    """The sizes in whatever nesting: it differs between releases."""
    if isinstance(document, dict):
        if "fileName" in document:
            return {str(document["fileName"]): int(document.get("fileSize") or 0)}
        document = list(document.values())
    found = dict[str, int]()
    for part in document if isinstance(document, list) else ():
        found |= _sizes(part)
    return found


def _log_contents(page: bytes, name: str) -> bytes:
    """The log without the lines that its node puts before and after it."""
    _, begin, rest = page.partition(b"\nLogContents:\n")
    contents, end, _ = rest.rpartition(f"End of LogType:{name}".encode())
    return contents if begin and end else page


def _redirect(headers: Mapping[str, str]) -> list[str]:
    found = _REFRESH.search(headers.get("refresh", ""))
    parts = urlsplit(headers.get("location", "") or (found[1] if found else ""))
    return [f"{parts.scheme}://{parts.netloc}"] if parts.scheme in {"http", "https"} and parts.netloc else []


def _words(reply: ClusterReply) -> str:
    return reply.text()[:_SHOWN_CHARACTERS].strip()
