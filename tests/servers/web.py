"""An HTTP server of tests, which keeps what it receives and answers as a test says."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.secured import Certificates


@dataclass(frozen=True)
class Received:
    """A request; the names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float


@dataclass(frozen=True)
class Reply:
    """The answer to a request; `drop` closes the connection instead, `close` after it without a word.

    `interim` is what the server sends before the answer.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drop: bool = False
    close: bool = False
    interim: bytes = b""


def ok(_: Received) -> Reply:
    return Reply()


@dataclass
class WebServer:
    """A running server."""

    url: str
    reply: Callable[[Received], Reply]
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    context: ssl.SSLContext | None = None

    def get_request(self) -> Any:
        made, address = super().get_request()
        if self.context is not None:  # the thread of the connection makes the handshake
            made = self.context.wrap_socket(made, server_side=True, do_handshake_on_connect=False)
        return made, address

    def handle_error(self, *_: object) -> None:
        return  # of clients that go, or that have no certificate


@contextmanager
def web_server(
    reply: Callable[[Received], Reply] = ok, *, context: ssl.SSLContext | None = None, port: int = 0
) -> Iterator[WebServer]:
    """Serve on the loopback; `reply` may raise nothing."""
    with _Server(("127.0.0.1", port), BaseHTTPRequestHandler) as server:
        scheme, host = ("https", "localhost") if context else ("http", "127.0.0.1")
        found = WebServer(f"{scheme}://{host}:{server.server_port}", reply)
        server.context = context
        server.RequestHandlerClass = _handler(found)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def _handler(found: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else a client that delays its ACK waits 40 ms for the body

        def setup(self) -> None:
            super().setup()
            with found.lock:
                found.connections += 1

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = Received(self.command, self.path, headers, body, time.monotonic())
            with found.lock:
                found.received.append(received)
                reply = found.reply(received)
            time.sleep(reply.delay_s)
            if reply.drop:
                self.close_connection = True
                return
            self.wfile.write(reply.interim)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in reply.headers:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection |= reply.close

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            return

    return Handler


def mutual_tls(certificates: Certificates) -> ssl.SSLContext:
    """TLS of a server that wants a certificate of the client."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates.ca)
    context.load_cert_chain(certificates.server)
    context.verify_mode = ssl.CERT_REQUIRED
    return context
