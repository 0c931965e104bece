"""Requests to the servers of a table, by urllib3.

The transport of Elastic's own client looks for metadata of installed packages, which the zip for nodes of
a cluster does not have.
"""

import base64
import gzip
import json
import random
import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError
from urllib3.exceptions import TimeoutError as TooLate

from spark_runner.connectors.elasticsearch.answers import OK, Answer, is_busy, words_of
from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable
from spark_runner.connectors.patience import Patience
from spark_runner.connectors.templates import pieces
from spark_runner.connectors.timed_socket import TimedSocket
from spark_runner.protocol.metadata_addresses import is_metadata
from spark_runner.protocol.redacted import spellings_within
from spark_runner.push.errors import Overloaded, Refused, Retryable, TimedOut

JSON, LINES = "application/json", "application/x-ndjson"
_LOCAL = {"localhost", "127.0.0.1", "::1"}  # compression would only cost time
_UNAUTHORIZED, _FORBIDDEN, _MISSING = 401, 403, 404
_CHUNK = 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024  # of an answer: a task holds it as a whole


class Client:
    """One connection at a time, to one of the servers. A context manager.

    It masks `secrets` in texts of answers; a task gets them from the driver, which has them by default.
    """

    def __init__(self, options: Mapping[str, Any], secrets: Sequence[str] | None = None) -> None:
        self._options, self._patience = options, Patience(options["retry_timeout"])
        self._servers = [(urlsplit(each), self._pool(each)) for each in options["hosts"]]
        self._turn = random.randrange(len(self._servers))  # noqa: S311 - so that tasks use all servers
        self._headers = {"accept": JSON, **_login(options)}
        login = self._headers.get("authorization", "").partition(" ")[2]
        known = spellings_within(map(str, options.values())) if secrets is None else secrets
        self._secrets = [*known, *filter(None, [login])]
        self.where = f"Elasticsearch at {', '.join(options['hosts'])}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for _, pool in self._servers:
            pool.close()

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = JSON, most: int = MOST_BYTES
    ) -> Answer:
        """The answer of the first server that gives one; raises Unreachable, ConnectorError for its TLS.

        `body` is a value for JSON, or bytes of another kind; `most` bytes are read, or with 0 all.
        """
        for left in reversed(range(len(self._servers))):
            try:
                return self._asked(method, path, body, kind, most)
            except HTTPError as error:
                words = self._lost(error)
                if not left:
                    raise Unreachable(words) from error
        raise AssertionError

    def attempt(self, method: str, path: str, body: Any, kind: str, most: int) -> Answer:
        """Likewise, of one server; a further attempt asks the next one, if this one does not answer.

        Raises DeliveryError, also if it is busy or broken, and ConnectorError for its TLS.
        """
        try:
            answer = self._asked(method, path, body, kind, most)
        except HTTPError as error:
            is_late = isinstance(error, TooLate) and not isinstance(error, ConnectTimeoutError)
            raise (TimedOut if is_late else Refused)(self._lost(error)) from error
        if answer.may_change() and not answer.is_large:
            words = f"{self.where} is busy or broken: {self.words(answer)}"
            raise (Overloaded if is_busy(answer.status, answer.error()) else Retryable)(words)
        return answer

    def insist(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = JSON,
        most: int = MOST_BYTES,
        *,
        is_divisible: bool = False,
    ) -> Answer:
        """Likewise, after further attempts for `retry_timeout`; raises Unreachable.

        `is_divisible`: not where the server lacks memory, as the caller then asks for less.
        """
        while True:
            try:
                answer = self.ask(method, path, body, kind, most)
                if answer.is_large or not answer.may_change() or (is_divisible and answer.lacks_memory()):
                    return answer
                reason = f"{self.where} is busy or broken: {self.words(answer)}"
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
        if answer.is_large:
            raise Unreachable(f"{self.where} gave an answer that is too large")
        if answer.status < OK:
            return answer
        words = f"{self.where} refused: {self.words(answer)}"
        if answer.status == _UNAUTHORIZED:
            words += "; check the options 'username' and 'password', or 'api_key'"
        elif answer.status == _FORBIDDEN:
            words += "; the user needs more rights"
        elif answer.status == _MISSING:
            raise NothingThere(words)
        raise (Unreachable if answer.may_change() else ConnectorError)(words)

    def words(self, answer: Answer) -> str:
        """The status and the error of an answer."""
        return f"{answer.status} {self.words_of(answer.error())}".strip()

    def words_of(self, error: Mapping[str, Any]) -> str:
        """An error of the server, without secrets of the table."""
        return words_of(error, self._secrets)

    def _lost(self, error: HTTPError) -> str:
        """Turn to the next server; returns why, and raises ConnectorError for the TLS of this one."""
        self._turn += 1
        cause = _cause(error)
        if isinstance(cause, ssl.SSLCertVerificationError):
            words = f"{self.where} is not trusted: {cause.verify_message}; check option 'ca_file'"
            raise ConnectorError(words) from error
        return f"{self.where} does not answer: {cause}"

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
        try:
            while part := found.read1(_CHUNK):
                parts.append(part)
                size += len(part)
                if most and size > most:
                    found.close()
                    return Answer(found.status, b"", is_large=True)
        except TooLate:
            words = f"its answer has no end after {self._options['request_timeout']:g} s"
            raise TooLate(words) from None
        found.release_conn()
        return Answer(found.status, b"".join(parts))

    def _pool(self, server: str) -> urllib3.HTTPConnectionPool:
        given = self._options
        timeout = urllib3.Timeout(connect=given["connect_timeout"], read=given["request_timeout"])
        settings: dict[str, Any] = {"timeout": timeout, "maxsize": 1, "longest": given["request_timeout"]}
        if server.startswith("https:"):
            try:
                settings["ssl_context"] = ssl.create_default_context(cafile=given["ca_file"] or None)
            except OSError as error:
                raise ConnectorError(f"option 'ca_file': {given['ca_file']}: {error}") from error
        pool = urllib3.connection_from_url(server, **settings)
        pool.ConnectionCls = _Secure if server.startswith("https:") else _Timed
        return pool


class _Timed(HTTPConnection):
    """Ends each exchange within `longest` seconds: a server may send a byte from time to time."""

    def __init__(self, *given: Any, longest: float, **more: Any) -> None:
        super().__init__(*given, **more)
        self._longest = longest

    def connect(self) -> None:
        super().connect()
        _check_peer(self)
        self.sock: Any = _Socket(self.sock)
        self.sock.set_deadline(self._longest)

    def request(self, *given: Any, **more: Any) -> None:
        if self.sock is not None:
            self.sock.set_deadline(self._longest)
        super().request(*given, **more)


class _Secure(_Timed, HTTPSConnection):
    pass


class _Socket(TimedSocket):
    def settimeout(self, seconds: float) -> None:
        """Without effect: its deadline limits what urllib3 does."""


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
