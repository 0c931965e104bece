"""A receiver of callbacks: a real HTTP server that records requests and answers as configured."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.waiting import wait_until


@dataclass(frozen=True)
class Request:
    """One request."""

    path: str
    headers: Mapping[str, str]
    data: bytes

    @property
    def body(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.data)
        return document


Answerer = Callable[[BaseHTTPRequestHandler], None]


def answer(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answerer:
    """An answer with this JSON, or these bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def write(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    return write


def override(status: str) -> Answerer:
    return answer({"code": "SUCCESS", "data": {"status": status}})


ACKNOWLEDGED = answer({"code": "SUCCESS"})
REFUSED = answer({"code": "BUSY"})


@dataclass
class Receiver:
    """Answers requests with the entries of `answers` in turn, and then always with the last one."""

    url: str
    answers: list[Answerer] = field(default_factory=lambda: [ACKNOWLEDGED])
    requests: list[Request] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    """For answers that wait; set at the end of the test."""
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: Request) -> Answerer:
        with self._guard:
            self.requests.append(request)
            return self.answers[min(len(self.requests), len(self.answers)) - 1]

    def wait_requests(self, count: int = 1, timeout: float = 30) -> list[Request]:
        wait_until(lambda: len(self.requests) >= count, timeout, f"{count} requests have arrived")
        return self.requests


@contextmanager
def receiver(
    *answers: Answerer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[Receiver]:
    """A receiver at `url`, on loopback."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            made.take(Request(self.path, dict(self.headers.items()), data))(self)

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[Any, Any]:
            sock, address = super().get_request()
            # No handshake here: a client that never sends one would block the others.
            return (
                sock if tls is None else tls.wrap_socket(sock, True, do_handshake_on_connect=False)
            ), address

        def handle_error(self, *_: object) -> None:
            return  # some tests disconnect within a request

    with Server((host, 0), Handler) as server:
        scheme = "http" if tls is None else "https"
        made = Receiver(f"{scheme}://{'localhost' if tls else host}:{server.server_address[1]}/ended")
        if answers:
            made.answers = list(answers)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield made
        finally:
            made.released.set()
            server.shutdown()
            thread.join()
