"""An untrusted server: records every request with its headers, and answers as configured."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Stranger:
    """The received requests as text: request lines, headers and bodies."""

    url: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)


@contextmanager
def stranger(tls: ssl.SSLContext | None = None) -> Iterator[Stranger]:
    """A server on loopback; with `tls` its name is localhost."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            made.seen.append(f"{self.requestline}\n{self.headers}\n{body}")
            self.send_response(made.status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made = Stranger(f"http://127.0.0.1:{server.server_address[1]}")
        if tls is not None:
            made.url = made.url.replace("http://127.0.0.1", "https://localhost")
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
