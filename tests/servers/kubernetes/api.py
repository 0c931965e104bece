"""The Kubernetes API as JSON over HTTPS, as far as the test kubelet and the tests need it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

REQUEST_TIMEOUT_S = 20
_PATCH = "application/strategic-merge-patch+json"

Document = dict[str, Any]


class ApiError(Exception):
    """The API refused a request; `status` is its HTTP status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.message = message
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class ApiAddress:
    """The URL of the API, the file with its certificate authority, and a token."""

    url: str
    ca: Path
    token: str

    def kubeconfig(self, namespace: str = "default") -> Document:
        """A configuration file for clients: the token of one user, one cluster."""
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "tests", "user": {"token": self.token}}],
            "contexts": [
                {"name": "tests", "context": {"cluster": "tests", "user": "tests", "namespace": namespace}}
            ],
        }


class Api:
    """Requests as one user; thread-safe."""

    def __init__(self, address: ApiAddress) -> None:
        self.address = address
        self._pool = urllib3.PoolManager(maxsize=16, ca_certs=str(address.ca), retries=False)

    def close(self) -> None:
        self._pool.clear()

    def get(self, path: str, **query: str) -> Document:
        return self._request("GET", path, query=query)

    def items(self, path: str, **query: str) -> list[Document]:
        items: list[Document] = self.get(path, **query)["items"]
        return items

    def create(self, path: str, body: Mapping[str, Any], **query: str) -> Document:
        return self._request("POST", path, query=query, body=body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Document:
        return self._request("PATCH", path, body=body)

    def replace(self, path: str, body: Mapping[str, Any]) -> Document:
        return self._request("PUT", path, body=body)

    def delete(self, path: str, *, grace_seconds: int | None = None, uid: str = "") -> None:
        """Delete one object; no error if it is gone, or has been replaced by another."""
        body: Document = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._request("DELETE", path, body=body)
        except ApiError as error:
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                raise

    def text(self, path: str, **query: str) -> str:
        """The body as plain text, such as a log."""
        return self._send("GET", path, query=query).data.decode("utf-8")

    def watch(self, path: str, version: str, seconds: int) -> Iterator[Document]:
        """The events after `version` for at most `seconds`; raises ApiError with 410 for an old version."""
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        with self._send("GET", path, query=query, stream=True) as answer:
            rest = b""
            for piece in answer.stream(65536):
                *lines, rest = (rest + piece).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise ApiError(status["code"], status["reason"], status["message"])
                    yield event

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Document:
        document: Document = self._send(method, path, query=query, body=body).json()
        return document

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        answer = self._pool.request(
            method,
            f"{self.address.url}{path}?{urlencode(query or {})}",
            body=None if body is None else json.dumps(body),
            headers={
                "Authorization": f"Bearer {self.address.token}",
                "Content-Type": _PATCH if method == "PATCH" else "application/json",
            },
            timeout=REQUEST_TIMEOUT_S,
            preload_content=not stream,
        )
        if answer.status >= HTTPStatus.BAD_REQUEST:
            words = answer.data.decode("utf-8", errors="replace")
            try:
                status = json.loads(words)
            except ValueError:
                status = {}
            answer.release_conn()
            raise ApiError(answer.status, status.get("reason", ""), status.get("message", words))
        return answer
