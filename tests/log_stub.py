"""A log server for tests: it checks requests, stores them or answers by script."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    data: bytes
    time: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Said:
    """An answer. `takes`: the request is stored; `cut`: the connection ends within the answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    takes: bool = False
    cut: bool = False


class Store(Protocol):
    def check(self, request: Request) -> None:
        """Raise for a request that the real server would reject as malformed."""

    def take(self, request: Request) -> Said: ...


@dataclass
class Stub:
    """Answers with the entries of `script` in turn, and then with those of the store."""

    url: str
    store: Store
    script: list[Said] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Said:
        with self._guard:
            self.requests.append(request)
            try:
                self.store.check(request)
                if not self.script:
                    return self.store.take(request)
                said = self.script.pop(0)
                if said.takes:
                    self.store.take(request)
            except Exception as error:  # noqa: BLE001 - reported at the end of the test
                self.wrong.append(repr(error))
                return Said(500)
            return said


@contextmanager
def log_stub(store: Store, *script: Said) -> Iterator[Stub]:
    """A stub on loopback; fails at the end if a request was malformed."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            said = stub.answer(Request("POST", self.path, headers, data))
            if said.cut:
                self.wfile.write(b"HTTP/1.0 20")
                return
            self.send_response(said.status)
            for name, value in {"Content-Type": "text/plain; charset=utf-8", **said.headers}.items():
                self.send_header(name, value)
            if said.status != 204:
                self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        stub = Stub(f"http://127.0.0.1:{server.server_address[1]}", store, list(script))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield stub
        finally:
            server.shutdown()
            thread.join()
    assert not stub.wrong
