"""The log endpoint of a kubelet, which the API server calls for the log of a pod."""

import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.servers.kubernetes.container_log import Part, parts

_KNOWN = {"follow", "tailLines", "limitBytes", "sinceSeconds", "timestamps"}
FOLLOW_LOOK_S = 0.1

LogOf = Callable[[str, str], tuple[Path, Callable[[], bool]] | None]
"""By namespace and pod: the log file, and whether it may grow."""


class LogServer:
    """`/containerLogs/<namespace>/<pod>/<container>` by TLS; the certificate is not verified."""

    def __init__(self, folder: Path, log_of: LogOf) -> None:
        self._folder = folder
        self._log_of = log_of
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    def start(self) -> None:
        key, certificate = self._folder / "kubelet.key", self._folder / "kubelet.pem"
        subject = ("-subj", "/CN=kubelet", "-days", "2")
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject]
        subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._log_of))
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="kubelet logs", daemon=True).start()

    def stop(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()


def _handler(log_of: LogOf) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
            _, kind, namespace, pod, _ = asked.path.split("/")
            found = log_of(namespace, pod)
            if kind != "containerLogs" or found is None or not found[0].exists():
                self.send_error(HTTPStatus.NOT_FOUND)
            elif strange := set(query) - _KNOWN:
                self.send_error(HTTPStatus.BAD_REQUEST, f"the test kubelet does not support {strange}")
            else:
                self._send(*found, query)

        def _send(self, log: Path, is_open: Callable[[], bool], query: dict[str, str]) -> None:
            since = time.time() - int(query["sinceSeconds"]) if "sinceSeconds" in query else 0
            stamped = query.get("timestamps") == "true"
            with log.open("rb") as file:
                found = [part for part in parts(file) if part.seconds >= since]
                data = _written(found, stamped=stamped)
                if lines := query.get("tailLines"):
                    data = b"".join(data.splitlines(keepends=True)[-int(lines) :]) if int(lines) else b""
                if limit := query.get("limitBytes"):
                    data = data[: int(limit)]
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(data)
                while query.get("follow") == "true" and is_open() and log.exists():
                    self.wfile.flush()
                    time.sleep(FOLLOW_LOOK_S)
                    self.wfile.write(_written(list(parts(file)), stamped=stamped))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
            del format, args

    return Handler


def _written(found: list[Part], *, stamped: bool) -> bytes:
    """As from a kubelet: the parts of a line joined, with its time in front on request."""
    pieces, is_new = list[bytes](), True
    for part in found:
        pieces.append((f"{part.at} ".encode() if stamped and is_new else b"") + part.text)
        is_new = part.is_end
        if is_new:
            pieces.append(b"\n")
    return b"".join(pieces)
