"""A client of rows that a task serves, and a server of them without Spark."""

import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from spark_runner.push.poll.buffer import PollBuffer
from spark_runner.push.poll.server import PollServer
from spark_runner.push.poll.settings import PollSettings
from spark_runner.push.settings import Limits

TOKEN = "token-of-clients-77"  # noqa: S105 - of tests alone
WAIT_S = 60


@dataclass(frozen=True)
class Reply:
    """What the server answered; `document` is None without a body."""

    status: int
    headers: http.client.HTTPMessage
    document: Any

    @property
    def rows(self) -> Any:
        return self.document["rows"]

    @property
    def next(self) -> str:
        return str(self.document["next"])

    @property
    def error(self) -> str:
        """The code of an error."""
        return str(self.document["error"]["code"])


@dataclass(frozen=True)
class Client:
    """Asks for rows, with a connection for each request."""

    url: str
    token: str = TOKEN
    tls: ssl.SSLContext | None = None

    def ask(self, method: str = "GET", path: str = "", **parameters: object) -> Reply:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        made = (
            http.client.HTTPSConnection(host, port, timeout=WAIT_S, context=self.tls)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=WAIT_S)
        )
        with closing(made):
            target = path or f"{parts.path}?{urlencode(parameters)}"
            made.request(method, target, headers={"Authorization": f"Bearer {self.token}"})
            answer = made.getresponse()
            body = answer.read()
            return Reply(answer.status, answer.headers, json.loads(body) if body else None)

    def all_rows(self, **parameters: int) -> list[Any]:
        """All rows up to the end, each page acknowledged by asking for the next one."""
        found, reply = list[Any](), self.ask("GET", "", wait=30, **parameters)
        while not reply.document["end"]:
            found += reply.rows
            reply = self.ask("GET", "", wait=30, after=reply.next, **parameters)
        return found


@contextmanager
def served(
    settings: PollSettings | None = None, limits: Limits | None = None
) -> Iterator[tuple[PollBuffer, str]]:
    """A buffer that serves its rows as soon as it has some, and the URL."""
    buffer = PollBuffer()
    buffer.adjust(limits or Limits())
    buffer.extend(1e18)
    server = PollServer(buffer, settings or PollSettings(TOKEN))
    url = server.start()
    with closing(server):
        yield buffer, url


def rows(count: int) -> list[bytes]:
    return [b'{"n":%d}' % number for number in range(count)]


def numbers(found: Sequence[Any]) -> list[int]:
    return [row["n"] for row in found]
