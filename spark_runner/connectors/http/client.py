"""Requests to the server of a table, one after the other on one connection."""

import base64
import random
import time
from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.http.address import Server, quoted, split, statuses
from spark_runner.connectors.http.answers import Answer
from spark_runner.connectors.http.connection import LOST, Connection
from spark_runner.connectors.http.shown import Shown

SHOWN_BYTES = 64 * 1024  # of an answer that only tells success or failure
_PAUSE_S = 0.1  # about the time before the first further attempt; it doubles up to _MAX_PAUSE_S
_MAX_PAUSE_S = 10.0
_REDIRECTS = range(300, 400)
_LOGIN, _MISSING = {401, 403, 407}, {404, 410}


class Lost(Exception):
    """A request has no answer: its server does not accept a connection, or breaks it, or `is_late`.

    If the request `was_sent`, the server may have carried it out.
    """

    def __init__(self, words: str, *, is_late: bool, was_sent: bool) -> None:
        super().__init__(words)
        self.is_late, self.was_sent = is_late, was_sent


class Client:
    """One connection. Texts of answers in its errors have no `secrets`."""

    def __init__(self, options: Mapping[str, Any], secrets: tuple[str, ...] = ()) -> None:
        self._options = options
        self.server, self.path = split(options["url"])
        self._retried = statuses(options["retry_status"])
        self._between = 1 / options["rate_limit"] if options["rate_limit"] else 0.0
        self._next = 0.0
        self._headers = {
            "host": self.server.place,
            "user-agent": "spark-job-orchestrator",
            **_headers(options),
        }
        self.shown = Shown([*secrets, self._headers.get("authorization", "").partition(" ")[2]])
        self._connection = Connection(self.server, options)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        most: int = SHOWN_BYTES,
    ) -> Answer:
        """The answer to one request, of which `most` bytes are read.

        Raises Lost, and ConnectorError for wrong TLS.
        """
        is_open = False
        try:
            self._connection.open()
            is_open = True
            return self._connection.exchange(method, path, body, {**self._headers, **(headers or {})}, most)
        except LOST as error:
            self.close()
            words, is_late = self._lost(error), isinstance(error, TimeoutError)
            raise Lost(words, is_late=is_late, was_sent=is_open) from error

    def get(self, path: str, headers: Mapping[str, str], most: int = SHOWN_BYTES) -> Answer:
        """The answer to a GET, after further attempts for `retry_timeout` seconds, within the rate limit.

        Waits for the limit do not count. Raises Unreachable, and ConnectorError for wrong TLS.
        """
        spent, earliest, pause = 0.0, 0.0, _PAUSE_S
        while True:
            began, wait = self._wait_for_turn(earliest), 0.0
            try:
                answer = self.request("GET", path, headers=headers, most=most)
            except Lost as error:
                reason = str(error)
            else:
                if answer.status not in self._retried:
                    return answer
                wait, reason = answer.retry_after(), f"{self.server} answers {self.words(answer)}"
            wait = max(wait, pause * random.uniform(0.5, 1))  # noqa: S311 - so that tasks spread
            earliest = time.monotonic() + wait
            spent += earliest - began
            if spent > self._options["retry_timeout"]:
                raise Unreachable(reason)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def connect(self) -> None:
        """Open the connection, if it is not open; raises Unreachable, ConnectorError."""
        try:
            self._connection.open()
        except LOST as error:
            raise Unreachable(self._lost(error)) from error

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._connection.close()

    def is_idle(self) -> bool:
        """Whether the connection is open; it is not where the server closed it after its last answer."""
        return self._connection.is_idle()

    def words(self, answer: Answer) -> str:
        """The status of an answer, and the beginning of its text."""
        data = answer.data[:SHOWN_BYTES]
        is_whole = answer.is_whole and len(data) == len(answer.data)
        return f"{answer.status} {self.shown(data.decode('utf-8', 'replace'), is_whole=is_whole)}".strip()

    def refusal(self, answer: Answer) -> ConnectorError:
        """The error for an answer that holds for all requests."""
        words = f"{self.server} refused: {self.words(answer)}"
        if answer.status in _REDIRECTS:
            words = f"{self.server} answers {answer.status}, a redirect, which is not followed; check 'url'"
        elif answer.status in _LOGIN:
            words += "; check the login: 'token', 'username' and 'password', or 'ssl_certificate'"
        elif answer.status in _MISSING:
            words += "; check 'url'"
        return ConnectorError(words)

    def _lost(self, error: BaseException) -> str:
        return f"{self.server} does not answer: {self.shown(str(error)) or type(error).__name__}"

    def _wait_for_turn(self, earliest: float) -> float:
        """Wait until the rate limit allows a request, and at least until `earliest`; returns the time."""
        turn = max(time.monotonic(), earliest, self._next)
        self._next = turn + self._between
        time.sleep(max(0.0, turn - time.monotonic()))
        return turn


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
