"""Requests to the server of a table, one after the other on one connection."""

import base64
import http.client
import os
import random
import select
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.http.address import Server, quoted, split, statuses
from spark_runner.protocol.metadata_addresses import is_metadata

SHOWN_BYTES = 64 * 1024  # of an answer that only tells success or failure
_PAUSE_S = 0.1  # about the time before the first further attempt; it doubles up to _MAX_PAUSE_S
_MAX_PAUSE_S = 10.0
_CHUNK = 256 * 1024
_WORDS = 200  # characters of an answer in a message
_REDIRECTS = range(300, 400)
_LOGIN, _MISSING = {401, 403, 407}, {404, 410}
_LOST = (OSError, http.client.HTTPException)
# Alerts of TLS about a client; others are of a connection that broke, such as a damaged record.
_OF_CLIENT = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "HANDSHAKE_FAILURE", "DECRYPT_ERROR")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request; `is_whole` is false if it has more bytes than allowed."""

    status: int
    headers: Message
    data: bytes
    is_whole: bool

    def words(self) -> str:
        """The status, and the begin of the text."""
        text = " ".join(self.data[: 4 * _WORDS].decode("utf-8", "replace").split())
        return f"{self.status} {text[:_WORDS]}".strip()

    def retry_after(self) -> float:
        """The seconds that the server asks to wait; 0 without them."""
        value = str(self.headers.get("Retry-After", "")).strip()
        try:
            return float(value) if value.isdecimal() else _seconds_until(value)
        except (ValueError, OverflowError):
            return 0.0


class Client:
    """The connection of one of `tasks` that share the rate limit, which begin by their `turn`.

    It masks `secrets` in texts of answers.
    """

    def __init__(
        self, options: Mapping[str, Any], tasks: int = 1, secrets: tuple[str, ...] = (), turn: int = 0
    ) -> None:
        self._options, self._secrets = options, secrets
        self.server, self.path = split(options["url"])
        self._retried = statuses(options["retry_status"])
        self._between = tasks / options["rate_limit"] if options["rate_limit"] else 0.0
        self._next = time.monotonic() + self._between * turn / tasks
        self._headers = {
            "host": self.server.place,
            "user-agent": "spark-job-orchestrator",
            **_headers(options),
        }
        self._trust = _trust(options) if self.server.scheme == "https" else None
        self._connection = http.client.HTTPConnection(self.server.host, self.server.port)
        self._connection.auto_open = 0

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        most: int = SHOWN_BYTES,
    ) -> Answer:
        """The answer, after further attempts for `retry_timeout` seconds.

        `most` are the bytes of an answer that are read. Raises Unreachable, and ConnectorError for wrong TLS.
        """
        began, pause = time.monotonic(), _PAUSE_S
        while True:
            wait = 0.0
            try:
                answer = self._asked(method, path, body, {**self._headers, **(headers or {})}, most)
            except _LOST as error:
                self.close()
                reason = f"does not answer: {_reason(error)}"
            else:
                if answer.status not in self._retried:
                    return answer
                wait, reason = answer.retry_after(), f"answers {self.masked(answer.words())}"
            wait = max(wait, pause * random.uniform(0.5, 1))  # noqa: S311 - so that tasks spread
            if time.monotonic() + wait - began > self._options["retry_timeout"]:
                raise Unreachable(f"{self.server} {reason}")
            time.sleep(wait)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def connect(self) -> None:
        """Open the connection, if it is not open; raises Unreachable, ConnectorError."""
        try:
            self._connect()
        except _LOST as error:
            raise Unreachable(f"{self.server} does not answer: {_reason(error)}") from error

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._connection.close()

    def is_idle(self) -> bool:
        """Whether the connection is open; it is not where the server closed it after its last answer."""
        if self._connection.sock is None:
            return False
        poll = select.poll()
        poll.register(self._connection.sock, select.POLLIN)
        return not poll.poll(0)

    def masked(self, text: str) -> str:
        """A text of the server without secrets of the table."""
        for secret in (*self._secrets, self._headers.get("authorization", "").partition(" ")[2]):
            text = text.replace(secret, "***") if secret else text
        return text

    def refusal(self, answer: Answer) -> ConnectorError:
        """The error for an answer that holds for all requests."""
        words = f"{self.server} refused: {self.masked(answer.words())}"
        if answer.status in _REDIRECTS:
            words = f"{self.server} answers {answer.status}, a redirect, which is not followed; check 'url'"
        elif answer.status in _LOGIN:
            words += "; check the login: 'token', 'username' and 'password', or 'ssl_certificate'"
        elif answer.status in _MISSING:
            words += "; check 'url'"
        return ConnectorError(words)

    def _asked(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> Answer:
        if self._between:
            now = time.monotonic()
            time.sleep(max(0.0, self._next - now))
            self._next = max(now, self._next) + self._between
        until = time.monotonic() + self._options["timeout"]
        self._connect()
        encoded = {name: value.encode() for name, value in headers.items()}
        try:
            self._connection.request(method, path, body, encoded)
            response = self._connection.getresponse()
        except ssl.SSLError as error:
            reason = str(error.reason)
            if "ALERT" in reason and any(each in reason for each in _OF_CLIENT):
                raise self._untrusted(error) from error  # TLS 1.3 asks for its certificate at last
            raise
        data = bytearray()
        while len(data) <= most and (chunk := response.read1(_CHUNK)):
            data += chunk
            if time.monotonic() > until:
                raise TimeoutError("the answer takes too long")
        response.close()
        if len(data) > most:
            self.close()
        elif response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return Answer(response.status, response.headers, bytes(data[:most]), len(data) <= most)

    def _connect(self) -> None:
        if self.is_idle():
            return
        self.close()
        found = socket.getaddrinfo(self.server.host, self.server.port, type=socket.SOCK_STREAM)
        if any(is_metadata(str(address[0])) for *_, address in found):
            words = "has an address that is link-local, or that of a cloud's metadata; no table may reach it"
            raise ConnectorError(f"{self.server} {words}")
        failure: OSError = TimeoutError()
        for *_, address in found:
            try:
                place = str(address[0]), int(address[1])
                made = socket.create_connection(place, self._options["connect_timeout"])
            except OSError as error:
                failure = error
            else:
                self._connection.sock = self._secured(made)
                self._connection.sock.settimeout(self._options["timeout"])
                return
        raise failure

    def _secured(self, plain: socket.socket) -> socket.socket:
        if self._trust is None:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return plain
        try:
            return self._trust.wrap_socket(plain, server_hostname=self.server.host)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            words = f"{self.server} is not trusted: {error.verify_message}; check option 'ssl_ca'"
            raise ConnectorError(words) from error
        except OSError as error:
            plain.close()
            if isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason):
                raise self._untrusted(error) from error
            raise

    def _untrusted(self, error: ssl.SSLError) -> ConnectorError:
        self.close()
        return ConnectorError(
            f"{self.server} refuses this client: {error.reason}; check 'ssl_certificate' and 'ssl_key'"
        )


def same_server(url: str, server: Server) -> str:
    """The path of a URL on this server; raises ValueError for another one, which must get no credentials."""
    found, path = split(url.partition("#")[0])
    if found != server:
        raise ValueError(f"it leads to another server, {found}")
    return quoted(path)


def _headers(options: Mapping[str, Any]) -> dict[str, str]:
    """The headers of the options, with names in lower case; raises ConnectorError, without a value."""
    given = {name: str(each).strip() for name, each in options.items() if name.startswith("headers.")}
    if options["token"]:
        given["token"] = f"Bearer {options['token'].strip()}"
    for name, value in given.items():
        if not value.isprintable():
            raise ConnectorError(f"option '{name}' has a character that no header may have")
    if options["username"]:
        login = f"{options['username']}:{options['password']}".encode()
        given["token"] = f"Basic {base64.b64encode(login).decode()}"
    names = {name: name.partition(".")[2].lower() or "authorization" for name in given}
    return {names[name]: value for name, value in given.items()}


def _trust(options: Mapping[str, Any]) -> ssl.SSLContext:
    try:
        trust = ssl.create_default_context(cadata=options["ssl_ca"] or None)
    except (ssl.SSLError, ValueError) as error:
        raise ConnectorError("option 'ssl_ca' has no certificates as PEM") from error
    if not options["ssl_certificate"]:
        return trust
    file = os.memfd_create("certificate")  # OpenSSL reads files alone; this one is on no disk
    try:
        with open(file, "w", closefd=False) as out:
            out.write(f"{options['ssl_key']}\n{options['ssl_certificate']}")
        trust.load_cert_chain(f"/proc/self/fd/{file}", password=lambda: str(options["ssl_key_password"]))
    except (OSError, ValueError) as error:
        words = "are no certificate and key as PEM that fit together"
        raise ConnectorError(
            f"options 'ssl_certificate', 'ssl_key' and 'ssl_key_password' {words}"
        ) from error
    finally:
        os.close(file)
    return trust


def _seconds_until(date: str) -> float:
    found = parsedate_to_datetime(date)
    return (found - datetime.now(UTC)).total_seconds() if found.tzinfo else 0.0


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
