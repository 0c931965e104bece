"""Bounds the connections of a server, so that clients that hold them open cannot block others."""

import io
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

from loguru import logger
from prometheus_client import CollectorRegistry

from orchestrator.config.listening import Listening
from orchestrator.metrics.pages import WORDS, Pages, Probe
from orchestrator.model.errors import SettingsError

AT_ONCE = 16
MOST_SECONDS = 20.0  # for a request with its response; Prometheus gives up after 10 s
_END_SECONDS = 0.5  # until a connection that was ended is closed


class Connections:
    """At most `AT_ONCE` connections, each for `MOST_SECONDS`. A further one ends the oldest."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Each with its deadline and a second descriptor, because the first may soon be reused by the system.
        self._open: dict[socket.socket, tuple[socket.socket, float]] = {}

    def admit(self, connection: socket.socket) -> bool:
        """Whether a connection is accepted; the oldest one is ended for it if needed. Raises OSError."""
        with self._changed:
            if len(self._open) >= AT_ONCE:
                self._end_oldest()
                if not self._changed.wait_for(lambda: len(self._open) < AT_ONCE, _END_SECONDS):
                    return False
            self._open[connection] = (connection.dup(), time.monotonic() + MOST_SECONDS)
            return True

    def forget(self, connection: socket.socket) -> None:
        """Remove a connection that has ended."""
        with self._changed:
            if (found := self._open.pop(connection, None)) is not None:
                found[0].close()
                self._changed.notify()

    def end_late(self) -> None:
        """End connections past their deadline."""
        now = time.monotonic()
        with self._changed:
            for copy, deadline in self._open.values():
                if now >= deadline:
                    _end(copy)

    def _end_oldest(self) -> None:
        for connection, (copy, deadline) in self._open.items():
            if deadline:  # not ended yet
                self._open[connection] = (copy, 0.0)
                _end(copy)
                return


def _end(copy: socket.socket) -> None:
    with suppress(OSError):  # it has ended already
        copy.shutdown(socket.SHUT_RDWR)


_QUIET_SECONDS = 5.0  # for the next bytes of a request
_MOST_BYTES = 16_384  # of a request: its line, and headers with a token
_POLL_SECONDS = 0.2
_LEAST_TOKEN, _MOST_TOKEN = 16, 4_096  # characters


@contextmanager
def serving(listening: Listening, registry: CollectorRegistry, probes: Sequence[Probe]) -> Iterator[str]:
    """Serve while the context is open; yields the URL. Without an address nothing is served, and it is empty.

    Raises SettingsError for an unusable address, token or certificate.
    """
    if not listening.address:
        yield ""
        return
    token = None if listening.token_file is None else _token(listening.token_file)
    pages = Pages(registry, {probe.name: probe for probe in probes}, token)
    server = _open(listening, pages)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="metrics", daemon=True)
    thread.start()
    host, port = server.socket.getsockname()[:2]
    url = f"http{'' if server.tls is None else 's'}://{f'[{host}]' if ':' in host else host}:{port}"
    logger.info("metrics and probes are served at {}", url)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingTCPServer):
    """A server with a bounded number of concurrent requests, each of bounded duration."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(
        self, family: socket.AddressFamily, address: Any, pages: Pages, tls: ssl.SSLContext | None
    ) -> None:
        self.address_family = family
        self.pages, self.tls = pages, tls
        self._connections = Connections()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a request in its own thread, if the number of connections allows it."""
        request.settimeout(_QUIET_SECONDS)
        if not self._connections.admit(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the process cannot start another thread
            self._connections.forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a request to its end, even if it fails."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.forget(request)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Read and answer. The handshake of TLS is part of it, so that it does not block other requests."""
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        with self.tls.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def service_actions(self) -> None:
        """End connections past their deadline."""
        self._connections.end_late()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - of the base class
        """Log one line without a trace: mostly the client has disconnected, or does not use TLS."""
        logger.debug("a request of {} for metrics has failed: {}", client_address, sys.exception())


class _Head(io.BufferedReader):
    """The request of a client: lines of at most `_MOST_BYTES` in all."""

    _left = _MOST_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        """The next line; raises LineTooLong past the limit, which the base class answers."""
        most = self._left + 1 if size is None or size < 0 else min(size, self._left + 1)
        line = super().readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("request")
        return line


class _Handler(BaseHTTPRequestHandler):
    """One request; HTTP/1.0, so that each connection ends with its response."""

    server: _Server
    server_version, sys_version = "orchestrator", ""
    rbufsize = 0  # `_Head` has the buffer

    def setup(self) -> None:
        """Bound the bytes of the request."""
        super().setup()
        self.rfile = _Head(self.rfile)

    def do_GET(self) -> None:
        """Answer with the body."""
        self._answer(lambda body: body)

    def do_HEAD(self) -> None:
        """Answer without it."""
        self._answer(lambda _body: b"")

    def _answer(self, shown: Callable[[bytes], bytes]) -> None:
        try:
            answer = self.server.pages.answer(self.path, self.headers.get("Authorization", ""))
        except Exception as error:  # noqa: BLE001 - a bug in one collector must not reveal more to the client
            logger.warning("metrics cannot be read: {}: {}", type(error).__name__, error)
            answer = HTTPStatus.INTERNAL_SERVER_ERROR, WORDS, b"reading the metrics has failed, see the log\n"
        status, content_type, body = answer
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(shown(body))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Log nothing, because probes come every few seconds."""


def _open(listening: Listening, pages: Pages) -> _Server:
    tls = _tls(listening)
    try:
        family, _, _, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return _Server(family, address, pages, tls)
    except OSError as error:
        raise SettingsError(
            f"metrics.address {listening.address} cannot be listened on: {error.strerror or error}; "
            "set another one, or use --metrics-address for this process alone"
        ) from error


def _token(file: Path) -> str:
    try:
        token = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"metrics.token_file {file} cannot be read: {error}") from error
    is_plain = token.isascii() and token.isprintable() and " " not in token
    if not is_plain or not _LEAST_TOKEN <= len(token) <= _MOST_TOKEN:
        raise SettingsError(
            f"metrics.token_file {file} holds no token: {_LEAST_TOKEN} to {_MOST_TOKEN} printable characters "
            "without spaces, for example from `openssl rand -hex 32`"
        )
    return token


def _tls(listening: Listening) -> ssl.SSLContext | None:
    if listening.certificate_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(listening.certificate_file, listening.key_file, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        words = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise SettingsError(
            f"metrics.certificate_file {listening.certificate_file} cannot be used with its key: {words}"
        ) from error
    return context
