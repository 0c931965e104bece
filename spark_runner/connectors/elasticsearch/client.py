"""Requests to the servers of a table, by urllib3.

The transport of Elastic's own client looks for metadata of installed packages, which the zip for nodes of
a cluster does not have.
"""

import base64
import gzip
import json
import random
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable
from spark_runner.connectors.patience import Patience
from spark_runner.connectors.templates import pieces
from spark_runner.protocol.metadata_addresses import is_metadata

JSON, LINES = "application/json", "application/x-ndjson"
_LOCAL = {"localhost", "127.0.0.1", "::1"}  # compression would only cost time
_OK, _UNAUTHORIZED, _FORBIDDEN, _MISSING, _BUSY, _BROKEN = 300, 401, 403, 404, 429, 500
_AWAY = {_BUSY, 502, 503, 504}
_CHUNK = 1024 * 1024
_SHOWN = 500  # characters of an error of the server
_NO_MEMORY = b"circuit_breaking_exception"  # perhaps inside of another error
# Errors of the cluster with a status as if the row were wrong: a full disk, a memory limit.
_OF_CLUSTER = {"cluster_block_exception", "circuit_breaking_exception", "es_rejected_execution_exception"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server; its error is empty if it has none.

    `is_large`: it has more bytes than asked for, or than the server has memory for; `data` is not all of it.
    """

    status: int
    data: bytes
    is_large: bool = False

    def document(self) -> dict[str, Any]:
        """The JSON object; empty if it is none."""
        try:
            found = json.loads(self.data)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def error(self) -> dict[str, Any]:
        """What is wrong, as the server describes it."""
        found = self.document().get("error")
        return found if isinstance(found, dict) else {"reason": found or self.data.decode("utf-8", "replace")}

    def words(self) -> str:
        """Likewise, as a text."""
        return f"{self.status} {words_of(self.error())}".strip()

    def may_change(self) -> bool:
        """Whether the same request may succeed later."""
        return is_of_cluster(self.status, self.error() if self.status >= _OK else {})


def words_of(error: Mapping[str, Any]) -> str:
    """The type and the reason of an error."""
    found = [str(error[name]) for name in ("type", "reason") if error.get(name)]
    return " ".join(": ".join(found).split())[:_SHOWN]


def is_of_cluster(status: int, error: Mapping[str, Any]) -> bool:
    """Whether an error is one of the cluster at this time, and not of a request or a row."""
    return status >= _BROKEN or is_busy(status, error)


def is_busy(status: int, error: Mapping[str, Any]) -> bool:
    """Whether the cluster says so itself; another error of 500 and above may have its cause in one row."""
    return status in _AWAY or error.get("type") in _OF_CLUSTER


class Client:
    """One connection at a time, to one of the servers. A context manager."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options, self._patience = options, Patience(options["retry_timeout"])
        self._servers = [(urlsplit(each), self._pool(each)) for each in options["hosts"]]
        self._turn = random.randrange(len(self._servers))  # noqa: S311 - so that tasks use all servers
        self._headers = {"accept": JSON, **_login(options)}
        self.where = f"Elasticsearch at {', '.join(options['hosts'])}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, pool in self._servers:
            pool.close()

    def ask(self, method: str, path: str, body: Any = None, kind: str = JSON, most: int = 0) -> Answer:
        """The answer of the first server that gives one; raises Unreachable, ConnectorError for its TLS.

        `body` is a value for JSON, or bytes of another kind; `most` bytes are read, or with 0 all.
        """
        for left in reversed(range(len(self._servers))):
            try:
                return self._asked(method, path, body, kind, most)
            except HTTPError as error:
                self._turn += 1
                cause = _cause(error)
                if isinstance(cause, ssl.SSLCertVerificationError):
                    words = f"{self.where} is not trusted: {cause.verify_message}; check option 'ca_file'"
                    raise ConnectorError(words) from error
                if not left:
                    raise Unreachable(f"{self.where} does not answer: {cause}") from error
        raise AssertionError

    def insist(self, method: str, path: str, body: Any = None, kind: str = JSON, most: int = 0) -> Answer:
        """Likewise, after further attempts for `retry_timeout`; raises Unreachable."""
        while True:
            try:
                answer = self.ask(method, path, body, kind, most)
                if answer.is_large or not answer.may_change():
                    return answer
                reason = f"{self.where} is busy or broken: {answer.words()}"
            except Unreachable as error:
                reason = str(error)
            self.wait(reason)

    def wait(self, reason: str) -> None:
        """Wait before a further attempt; raises Unreachable if the time for it is over."""
        if not self._patience.wait():
            raise Unreachable(reason)

    def succeeded(self) -> None:
        """The time for further attempts begins anew."""
        self._patience.succeeded()

    def check(self, answer: Answer) -> Answer:
        """The answer itself; raises ConnectorError for a refusal, NothingThere, Unreachable."""
        if answer.status < _OK:
            return answer
        words = f"{self.where} refused: {answer.words()}"
        if answer.status == _UNAUTHORIZED:
            words += "; check the options 'username' and 'password', or 'api_key'"
        elif answer.status == _FORBIDDEN:
            words += "; the user needs more rights"
        elif answer.status == _MISSING:
            raise NothingThere(words)
        raise (Unreachable if answer.may_change() else ConnectorError)(words)

    def _asked(self, method: str, path: str, body: Any, kind: str, most: int) -> Answer:
        url, pool = self._servers[self._turn % len(self._servers)]
        headers = self._headers
        if body is not None:
            headers = {**headers, "content-type": kind}
            body = json.dumps(body).encode() if kind == JSON else body
        if url.hostname not in _LOCAL:
            headers = {**headers, "accept-encoding": "gzip"}
            if body is not None:
                body, headers["content-encoding"] = gzip.compress(body, 1), "gzip"
        path = url.path.rstrip("/") + path
        found = pool.urlopen(
            method, path, body, headers, retries=False, redirect=False, preload_content=False
        )
        parts, size = list[bytes](), 0
        while part := found.read(_CHUNK):
            parts.append(part)
            size += len(part)
            if most and size > most:
                found.close()
                return Answer(found.status, b"", is_large=True)
        found.release_conn()
        data = b"".join(parts)
        return Answer(found.status, data, bool(most) and found.status >= _OK and _NO_MEMORY in data)

    def _pool(self, server: str) -> urllib3.HTTPConnectionPool:
        given = self._options
        timeout = urllib3.Timeout(connect=given["connect_timeout"], read=given["request_timeout"])
        settings: dict[str, Any] = {"timeout": timeout, "maxsize": 1}
        if server.startswith("https:"):
            try:
                settings["ssl_context"] = ssl.create_default_context(cafile=given["ca_file"] or None)
            except OSError as error:
                raise ConnectorError(f"option 'ca_file': {given['ca_file']}: {error}") from error
        pool = urllib3.connection_from_url(server, **settings)
        pool.ConnectionCls = _Secure if server.startswith("https:") else _Plain
        return pool


class _Plain(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _check_peer(self)


class _Secure(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _check_peer(self)


def _check_peer(connection: Any) -> None:
    """Raise ConnectorError, before a request, for a service of a cloud that serves credentials."""
    if is_metadata(str(connection.sock.getpeername()[0])):
        connection.close()
        words = "has an address that is link-local or of a cloud's metadata service"
        raise ConnectorError(f"host {connection.host} {words}, which no table may reach")


def pattern_of(template: str) -> str:
    """The path of the indices that a template names: any text stands for a column."""
    return quote("".join("*" if each.is_column else each.text for each in pieces(template)), safe="*,")


def _login(options: Mapping[str, Any]) -> dict[str, str]:
    key = str(options["api_key"])
    if key:
        return {"authorization": f"ApiKey {_base64(key) if ':' in key else key}"}
    user, password = options["username"], options["password"]
    return {"authorization": f"Basic {_base64(f'{user}:{password}')}"} if user else {}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _cause(error: BaseException) -> BaseException:
    """The innermost error: the outer ones add no facts."""
    for inner in (error.__cause__, getattr(error, "reason", None), *error.args):
        if isinstance(inner, BaseException) and inner is not error:
            return _cause(inner)
    return error
