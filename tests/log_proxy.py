"""An HTTP proxy before Elasticsearch that injects faults by rules, and counts requests."""

import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

_TIMEOUT_S = 30.0
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: reset instead of close


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def document(cls, status: int, document: Any, **headers: str) -> "Said":
        return cls(status, json.dumps(document).encode(), headers=headers)

    @classmethod
    def error(cls, status: int, kind: str, **headers: str) -> "Said":
        error = {"error": {"type": kind, "reason": "injected by the test"}, "status": status}
        return cls.document(status, error, **headers)


class Reset(Exception):
    """Raised by a rule: the connection is reset; with `half`, in the middle of this answer."""

    def __init__(self, half: Said | None = None) -> None:
        super().__init__("reset")
        self.half = half


@dataclass(frozen=True)
class Asked:
    """A request on its way to the server."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]
    proxy: "LogProxy"

    @property
    def is_bulk(self) -> bool:
        return "_bulk" in self.path

    @property
    def records(self) -> list[bytes]:
        lines = self.body.splitlines(keepends=True)
        return [b"".join(lines[index : index + 2]) for index in range(0, len(lines), 2)]

    def forward(self, body: bytes | None = None) -> Said:
        """Forward to the server; `body` replaces that of a bulk request."""
        return self.proxy.forward(self, self.body if body is None else body)


Rule = Callable[[Asked], Said]


def passing(asked: Asked) -> Said:
    return asked.forward()


class LogProxy:
    """Listens on its own port; `rule` decides about each request, in its thread. A context manager."""

    def __init__(self, upstream: str, rule: Rule = passing) -> None:
        self.rule = rule
        parts = urlsplit(upstream)
        self._server = (parts.hostname or "", parts.port or 80)
        self._guard = threading.Lock()
        self._at_once = 0
        self.most_at_once = 0  # bulk requests
        self.bulks = list[float]()  # monotonic time of each request
        self.refused = 0  # connections
        self.hung = threading.Event()  # a request waits for `released`
        self.released = threading.Event()
        self._away = False
        self._http = _Server(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._http.shutdown()
        self.cut()
        self._http.server_close()  # waits for its threads
        self._thread.join()

    def cut(self) -> None:
        """End all connections now."""
        for connection in list(self._http.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def away(self) -> bool:
        """Whether each connection is reset at once."""
        return self._away

    @away.setter
    def away(self, away: bool) -> None:
        self._away = away
        if away:
            self.cut()

    def hang(self, _asked: Asked) -> Said:
        """A rule: wait until the test releases it, then reset without an answer."""
        self.hung.set()
        self.released.wait(_TIMEOUT_S)
        raise Reset

    def answer(self, asked: Asked) -> Said:
        if not asked.is_bulk:
            return self.rule(asked)
        with self._guard:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.bulks.append(time.monotonic())
        try:
            return self.rule(asked)
        finally:
            with self._guard:
                self._at_once -= 1

    def forward(self, asked: Asked, body: bytes) -> Said:
        connection = http.client.HTTPConnection(*self._server, timeout=_TIMEOUT_S)
        try:
            connection.request(asked.method, asked.path, body or None, asked.headers)
            answer = connection.getresponse()
            return Said(answer.status, answer.read(), answer.headers.get_content_type())
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, proxy: LogProxy) -> None:
        self.proxy = proxy
        self.connections = set[socket.socket]()
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: object) -> None:
        """Ignore errors: broken connections are intended."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def handle_one_request(self) -> None:
        if self.server.proxy.away:
            self.server.proxy.refused += 1
            self._reset()
            return
        super().handle_one_request()

    def do_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        wanted = ("content-type", "accept", "content-encoding", "authorization")
        headers = {name: self.headers[name] for name in wanted if name in self.headers}
        try:
            said = self.server.proxy.answer(Asked(self.command, self.path, body, headers, self.server.proxy))
        except Reset as reset:
            if reset.half is not None:
                self._say(reset.half, reset.half.body[: len(reset.half.body) // 2])
            self._reset()
            return
        self._say(said, said.body)

    do_GET = do_PUT = do_POST = do_HEAD = do_any  # noqa: N815 - the names of the base class

    def _say(self, said: Said, body: bytes) -> None:
        self.send_response(said.status)
        self.send_header("content-type", said.content_type)
        self.send_header("content-length", str(len(said.body)))
        for name, value in said.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _reset(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.connection.shutdown(socket.SHUT_RD)

    def log_message(self, *_: object) -> None:
        """Write no log."""
