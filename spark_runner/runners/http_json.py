"""JSON over HTTP for the masters of clusters: bounded in time and size, and never sent twice."""

import json
import re
import socket
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import urllib3

from orchestrator.logs.http import (
    AnswerTooLarge,
    AnswerTooSlow,
    PlainConnection,
    SecureConnection,
    answer_within,
    plain_words,
)
from spark_runner.protocol.errors import BackendUnreachable
from spark_runner.protocol.metadata_addresses import is_metadata
from spark_runner.protocol.plain_file import parse_json

_REASONS = {
    re.compile(r"Connection refused", re.IGNORECASE): "no server listens there (connection refused)",
    re.compile(r"not known|Failed to resolve|nodename nor servname|No address associated"): (
        "its host name is unknown"
    ),
    re.compile(r"WRONG_VERSION_NUMBER|record layer failure"): "it does not speak TLS: is http meant?",
}
_UNTRUSTED = re.compile(r"certificate verify failed:? ?(?P<why>[^(]*)", re.IGNORECASE)


def no_answer(words: str) -> str:
    """The meaning of an error message of urllib3, a socket or TLS."""
    for pattern, reason in _REASONS.items():
        if pattern.search(words):
            return reason
    if untrusted := _UNTRUSTED.search(words):
        why = untrusted["why"].strip(" '\".")
        return f"its certificate is not trusted{f' ({why})' if why else ''}"
    return plain_words(words)


def refuses(host: str, port: str, seconds: float) -> str:
    """Why no server accepts a connection at this address; empty if one does."""
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except (OSError, ValueError) as error:
        return no_answer(str(error)) or type(error).__name__
    return ""


CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0  # between two pieces of a reply
REPLY_SECONDS = 30.0  # for the whole exchange
MAX_REPLY_BYTES = 16 * 1024 * 1024
_SHOWN_CHARACTERS = 200
_NEVER_SENT = (
    urllib3.exceptions.ConnectTimeoutError,  # also for a refused connection and an unknown host name
    urllib3.exceptions.LocationValueError,
)


@dataclass(frozen=True, slots=True)
class ClusterReply:
    """The answer of a server, with any status."""

    url: str
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether the status means success."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the class of statuses that mean success

    def text(self) -> str:
        """The body as text; invalid bytes are replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON; raises BackendUnreachable for anything else, such as the page of a proxy."""
        try:
            return parse_json(self.body)
        except ValueError as error:
            shown = self.text()[:_SHOWN_CHARACTERS]
            raise BackendUnreachable(
                f"{self.url} answered {self.status} with something that is no JSON: {shown!r}", sent=True
            ) from error


def _check_peer(connection: urllib3.connection.HTTPConnection) -> None:
    """Raise NewConnectionError, before anything is sent, for an address that no cluster has.

    A definition may name the pages of a cluster, and an error quotes an answer that is not such a page.
    """
    if is_metadata(str(connection.sock.getpeername()[0])):
        connection.close()
        message = "its address is link-local or of a cloud's metadata service: no request is sent"
        raise urllib3.exceptions.NewConnectionError(connection, message)


class _Plain(PlainConnection):
    def connect(self) -> None:
        super().connect()
        _check_peer(self)


class _Secure(SecureConnection):
    def connect(self) -> None:
        super().connect()
        _check_peer(self)


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Secure


class ClusterHttp:
    """Requests to the servers of one cluster; follows no redirect and repeats nothing by itself."""

    def __init__(self, *, headers: Mapping[str, str] | None = None) -> None:
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
            retries=False,
            headers=dict(headers or {}),
        )
        self._pool.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}

    def get(self, url: str) -> ClusterReply:
        """Send a GET request; raises BackendUnreachable without a complete reply."""
        return self._exchange("GET", url, None, {})

    def send(self, method: str, url: str, document: Any = None) -> ClusterReply:
        """Send a document as JSON; raises BackendUnreachable, with `sent` if it may have arrived."""
        body = b"" if document is None else json.dumps(document).encode()
        return self._exchange(method, url, body, {"Content-Type": "application/json;charset=UTF-8"})

    def post_form(self, url: str, fields: Mapping[str, str]) -> ClusterReply:
        """Send a form as a browser does; raises as `send` does."""
        body = urlencode(fields).encode()
        return self._exchange("POST", url, body, {"Content-Type": "application/x-www-form-urlencoded"})

    def _exchange(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> ClusterReply:
        asked = url.partition("?")[0]  # the query is long, and does not help the reader
        has_begun = False
        try:
            with answer_within(MAX_REPLY_BYTES, REPLY_SECONDS) as read:
                response = self._pool.request(
                    method,
                    url,
                    body=body,
                    headers={**self._pool.headers, **headers},
                    redirect=False,
                    preload_content=False,
                )
                has_begun = True
                with closing(
                    response
                ):  # the server may close a kept connection just as the next request leaves
                    return ClusterReply(url, response.status, read(response), dict(response.headers))
        except AnswerTooLarge as error:
            raise BackendUnreachable(f"{url} answers more than {MAX_REPLY_BYTES} bytes", sent=True) from error
        except AnswerTooSlow as error:
            message = f"{url} did not end its answer in {REPLY_SECONDS:.0f} s"
            raise BackendUnreachable(message, sent=True) from error
        except urllib3.exceptions.HTTPError as error:
            if has_begun:
                raise BackendUnreachable(
                    f"{asked} did not end its answer: {_words(error)}", sent=True
                ) from error
            raise BackendUnreachable(
                f"{asked} does not answer: {_words(error)}", sent=not isinstance(error, _NEVER_SENT)
            ) from error


def _words(error: Exception) -> str:
    return no_answer(str(error)) or type(error).__name__
