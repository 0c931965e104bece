"""A client of the web services of YARN's ResourceManagers and nodes.

Source: Hadoop's "ResourceManager REST API's" and "ResourceManager High Availability".
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from spark_runner.protocol.errors import BackendUnreachable, KillError
from spark_runner.runners.http_json import ClusterHttp, ClusterReply

URLS = "resource_manager"  # in a SubmissionPlace: the addresses of all ResourceManagers of the cluster
_TAGS_PER_REQUEST = 50  # a URL of about 4 kB; servers accept 8
_OK, _ACCEPTED, _MOVED, _UNAUTHORIZED, _NOT_FOUND = 200, 202, 307, 401, 404
_STANDBY = re.compile(r"this is standby RM|can ?not find any active RM", re.IGNORECASE)
_REFRESH = re.compile(r"url=(\S+)", re.IGNORECASE)
_SHOWN_CHARACTERS = 200
_CHECK = "see that it runs, and that yarn-site.xml in HADOOP_CONF_DIR of the worker names its web address"


@dataclass(frozen=True, slots=True)
class YarnApplication:
    """The present state of an application at the ResourceManager."""

    id: str
    state: str  # NEW, NEW_SAVING, SUBMITTED, ACCEPTED, RUNNING, FINISHED, FAILED or KILLED
    final_status: str  # UNDEFINED, SUCCEEDED, FAILED or KILLED: the application's own report
    diagnostics: str
    tags: frozenset[str]
    started_ms: int
    master_logs: str = ""  # page of the logs of its first container
    finished_ms: int = 0  # 0 while it runs

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "YarnApplication":
        """The application in one element of a reply; raises BackendUnreachable if it is malformed."""
        try:
            return cls(
                id=str(document["id"]),
                state=str(document["state"]),
                final_status=str(document["finalStatus"]),
                diagnostics=str(document.get("diagnostics") or ""),
                tags=frozenset(filter(None, str(document.get("applicationTags") or "").split(","))),
                started_ms=int(document["startedTime"]),
                master_logs=str(document.get("amContainerLogs") or ""),
                finished_ms=int(document.get("finishedTime") or 0),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BackendUnreachable(
                f"the ResourceManager's reply is not an application: {document!r:.200}"
            ) from error

    @property
    def finished(self) -> str:
        """When it ended, ISO 8601 in UTC; empty while it runs, and for a time that no clock has."""
        try:
            return (
                datetime.fromtimestamp(self.finished_ms / 1000, UTC).isoformat() if self.finished_ms else ""
            )
        except (ValueError, OverflowError, OSError):
            return ""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended in any way; an unknown state may be that of a running application."""
        return self.state in {"FINISHED", "FAILED", "KILLED"}


@dataclass(frozen=True, slots=True)
class Container:
    """One container, and the web address of its node."""

    id: str
    node: str

    @classmethod
    def of_page(cls, url: str) -> "Container | None":
        """The container in the address of its logs; None if the address names none."""
        found = re.fullmatch(r"(https?://[^/]+)/.*/(container_\w+)(/.*)?", url)
        return cls(found[2], found[1]) if found else None


class ResourceManager:
    """The ResourceManagers of one cluster, of which one is active; requests act as `user`."""

    def __init__(self, urls: Sequence[str], *, user: str) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._user = user
        self._http = ClusterHttp()
        self._lock = threading.Lock()
        self.place = {URLS: ",".join(self._urls)}  # independent of which one is active

    def applications(self, tags: Sequence[str]) -> list[YarnApplication]:
        """Every application with any of these tags, oldest first; raises BackendUnreachable."""
        found: dict[str, YarnApplication] = {}
        for start in range(0, len(tags), _TAGS_PER_REQUEST):
            # YARN stores tags in lower case, but compares the tags of a request literally.
            some = ",".join(tags[start : start + _TAGS_PER_REQUEST]).lower()
            reply = self._get("/ws/v1/cluster/apps", applicationTags=some, deSelects="resourceRequests")
            for element in _elements(reply.json(), "apps", "app"):
                application = YarnApplication.of(element)
                found[application.id] = application
        return sorted(found.values(), key=lambda application: (application.started_ms, application.id))

    def containers(self, application: YarnApplication) -> list[Container]:
        """The running containers of an application; raises BackendUnreachable."""
        path = f"/ws/v1/cluster/apps/{application.id}/appattempts"
        found = []
        for attempt in _elements(self._get(path).json(), "appAttempts", "appAttempt"):
            reply = self._ask("GET", f"{path}/{attempt.get('appAttemptId')}/containers")
            for element in _containers(reply.json()) if reply.status == _OK else []:
                if not element.get("containerId"):  # Hadoop's form for: no container yet
                    continue
                node = str(element.get("nodeHttpAddress") or "")
                node = node if "://" in node else f"http://{node}"
                found.append(Container(str(element["containerId"]), node.rstrip("/")))
        return found

    def kill(self, application: YarnApplication) -> None:
        """Request the end of an application, which follows some time later.

        Raises BackendUnreachable, KillError.
        """
        path = f"/ws/v1/cluster/apps/{application.id}/state"
        reply = self._ask("PUT", path, {"state": "KILLED"})
        if reply.status not in {_OK, _ACCEPTED, _NOT_FOUND}:
            raise KillError(
                f"YARN refuses to end {application.id} for user {self._user}: {reply.status} {_words(reply)}"
            )

    def is_running(self, container: Container) -> bool:
        """Whether the container's node reports it as running; False if the node does not answer."""
        try:
            reply = self._http.get(f"{container.node}/ws/v1/node/containers/{container.id}")
            states = (
                {element.get("state") for element in _containers(reply.json())} if reply.is_good else set()
            )
        except BackendUnreachable:
            return False
        return "RUNNING" in states

    def log(self, container: Container, name: str, last_bytes: int) -> bytes | None:
        """The last bytes of one of its log files, None if the node has none; raises BackendUnreachable."""
        query = urlencode({"size": -last_bytes, "user.name": self._user})
        reply = self._http.get(f"{container.node}/ws/v1/node/containers/{container.id}/logs/{name}?{query}")
        return _log_contents(reply.body, name) if reply.status == _OK else None

    def log_sizes(self, container: Container) -> dict[str, int]:
        """The sizes of its log files in bytes, from its node; raises BackendUnreachable."""
        query = urlencode({"user.name": self._user})
        reply = self._http.get(f"{container.node}/ws/v1/node/containers/{container.id}/logs?{query}")
        return _sizes(reply.json()) if reply.status == _OK else {}

    def _get(self, path: str, **fields: str) -> ClusterReply:
        reply = self._ask("GET", path, **fields)
        if reply.status != _OK:
            raise BackendUnreachable(f"{reply.url.partition('?')[0]} answers {reply.status}: {_words(reply)}")
        return reply

    def _ask(self, method: str, path: str, document: Any = None, **fields: str) -> ClusterReply:
        """The reply of the active ResourceManager, which is the first candidate of the next request."""
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
                raise BackendUnreachable(f"{url} requires Kerberos (SPNEGO), which is not supported")
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
        # A standby may redirect to an active one that the configuration does not name.
        yield from [url for url in redirects[:1] if url not in known]

    def _prefer(self, url: str) -> None:
        with self._lock:
            if url in self._urls:
                self._urls.remove(url)
                self._urls.insert(0, url)


def _elements(document: Any, outer: str, inner: str) -> list[Mapping[str, Any]]:
    """The list in a reply; Hadoop omits empty lists."""
    if not isinstance(document, dict) or outer not in document:
        raise BackendUnreachable(f"the ResourceManager answers without {outer!r}: {document!r:.200}")
    elements = (document[outer] or {}).get(inner) or []
    return list(elements) if isinstance(elements, list) else [elements]


def _containers(document: Any) -> list[Mapping[str, Any]]:
    """The containers in a reply, whose outer names differ between releases of Hadoop or are missing."""
    while isinstance(document, dict) and len(document) == 1:
        (document,) = document.values()
    if isinstance(document, dict):
        return [document]
    return document if isinstance(document, list) else []


def _sizes(document: Any) -> dict[str, int]:
    """The sizes by file name, at any depth: the nesting differs between releases."""
    if isinstance(document, dict):
        if "fileName" in document:
            return {str(document["fileName"]): int(document.get("fileSize") or 0)}
        document = list(document.values())
    found = dict[str, int]()
    for part in document if isinstance(document, list) else ():
        found |= _sizes(part)
    return found


def _log_contents(page: bytes, name: str) -> bytes:
    """The log without the lines that the node adds before and after it."""
    _, begin, rest = page.partition(b"\nLogContents:\n")
    contents, end, _ = rest.rpartition(f"End of LogType:{name}".encode())
    return contents if begin and end else page


def _redirect(headers: Mapping[str, str]) -> list[str]:
    found = _REFRESH.search(headers.get("refresh", ""))
    parts = urlsplit(headers.get("location", "") or (found[1] if found else ""))
    return [f"{parts.scheme}://{parts.netloc}"] if parts.scheme in {"http", "https"} and parts.netloc else []


def _words(reply: ClusterReply) -> str:
    return reply.text()[:_SHOWN_CHARACTERS].strip()
