"""Serves metrics and probes to who may read them: `/metrics`, `/livez`, `/readyz`."""

import hmac
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

from loguru import logger
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from orchestrator.errors import SettingsError
from orchestrator.metrics.health import Probe
from orchestrator.models.listening import Listening

_QUIET_SECONDS = 5.0  # for the next bytes of a request
_MOST_SECONDS = 20.0  # for a whole request and its answer; Prometheus gives up after ten
_AT_ONCE = 8  # requests; further ones are closed unread
_POLL_SECONDS = 0.2
_LEAST_TOKEN, _MOST_TOKEN = 16, 4_096  # characters
_WORDS = "text/plain; charset=utf-8"
_Answer = tuple[HTTPStatus, str, bytes]


@contextmanager
def serving(listening: Listening, registry: CollectorRegistry, probes: Sequence[Probe]) -> Iterator[str]:
    """Serve for the time of the context; gives the URL, empty when no address is set: then nothing listens.

    Raises SettingsError for an address, a token or a certificate that cannot be used.
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


class Pages:
    """What is answered to whom. `token`: what readers have to show, None = nothing."""

    def __init__(self, registry: CollectorRegistry, probes: Mapping[str, Probe], token: str | None) -> None:
        self._registry, self._probes = registry, probes
        self._token = token

    def answer(self, target: str, authorization: str) -> _Answer:
        """Status, content type and body for a request.

        Who shows no token learns of a probe no more than whether it passes, as from Kubernetes' own servers.
        """
        path, _, query = target.partition("?")
        name = path.removeprefix("/")
        is_allowed = self._is_allowed(authorization)
        if name in self._probes:
            is_verbose = any(part.partition("=")[0] == "verbose" for part in query.split("&"))
            if is_verbose and not is_allowed:
                return _UNAUTHORIZED
            return self._probe(name, is_verbose=is_verbose, is_allowed=is_allowed)
        if name != "metrics":
            paths = ", ".join(f"/{known}" for known in ("metrics", *self._probes))
            return HTTPStatus.NOT_FOUND, _WORDS, f"there are {paths}\n".encode()
        if not is_allowed:
            return _UNAUTHORIZED
        return HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry)

    def _probe(self, name: str, *, is_verbose: bool, is_allowed: bool) -> _Answer:
        report = self._probes[name].report()
        status = HTTPStatus.OK if report.is_well else HTTPStatus.INTERNAL_SERVER_ERROR
        lines = report.lines if is_verbose or (is_allowed and not report.is_well) else report.lines[-1:]
        words = "ok" if report.is_well and not is_verbose else "\n".join(lines)
        return status, _WORDS, f"{words}\n".encode()

    def _is_allowed(self, authorization: str) -> bool:
        if self._token is None:
            return True
        told = authorization.encode("utf-8", "replace")
        return hmac.compare_digest(told, f"Bearer {self._token}".encode())


_UNAUTHORIZED: _Answer = (HTTPStatus.UNAUTHORIZED, _WORDS, b"a bearer token is needed\n")


class _Server(ThreadingTCPServer):
    """Bounded: so many requests at once, each for so long."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(
        self, family: socket.AddressFamily, address: Any, pages: Pages, tls: ssl.SSLContext | None
    ) -> None:
        self.address_family = family
        self.pages, self.tls = pages, tls
        self._room = threading.Semaphore(_AT_ONCE)
        self._guard = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # a second hand on each connection, and its deadline
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own if there is room for one."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The whole of a request, also where it fails."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Read and answer; the handshake of TLS is here too, so that it holds up nobody else."""
        request.settimeout(_QUIET_SECONDS)
        hand = request.dup()
        with self._guard:
            self._open[hand] = time.monotonic() + _MOST_SECONDS
        try:
            if self.tls is None:
                super().finish_request(request, client_address)
                return
            with self.tls.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)
        finally:
            with self._guard:
                del self._open[hand]
                hand.close()

    def service_actions(self) -> None:
        """End what takes too long."""
        now = time.monotonic()
        with self._guard:
            for hand, deadline in self._open.items():
                if now >= deadline:
                    with suppress(OSError):
                        hand.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - of the base class
        """One line and no trace: mostly a reader that went away, or that speaks no TLS."""
        logger.debug("a request of {} for metrics has failed: {}", client_address, sys.exception())


class _Handler(BaseHTTPRequestHandler):
    """One request; HTTP/1.0, so that each connection ends with its answer."""

    server: _Server
    server_version, sys_version = "orchestrator", ""
    timeout = _QUIET_SECONDS

    def do_GET(self) -> None:
        """Answer with the body."""
        self._answer(lambda body: body)

    def do_HEAD(self) -> None:
        """Answer without it."""
        self._answer(lambda _body: b"")

    def _answer(self, shown: Callable[[bytes], bytes]) -> None:
        try:
            answer = self.server.pages.answer(self.path, self.headers.get("Authorization", ""))
        except Exception as error:  # noqa: BLE001 - a bug in one collector: who reads learns no more than that
            logger.warning("metrics cannot be read: {}: {}", type(error).__name__, error)
            answer = HTTPStatus.INTERNAL_SERVER_ERROR, _WORDS, b"it has failed, see the log\n"
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
        """Say nothing: probes come every few seconds."""


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
            "set another one, with --metrics-address for this process alone"
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
