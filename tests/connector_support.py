"""The connector of `examples/connector`, as an installed package and with a server for its tables."""

import json
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spark_runner.runners.driver_zip import zip_bytes

EXAMPLE = Path(__file__).parents[1] / "examples" / "connector"
METADATA = "Metadata-Version: 2.1\nName: http-rows\nVersion: 1.0\n"


def install_example(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the package in `folder`, which this process alone imports from."""
    shutil.copytree(EXAMPLE / "http_rows", folder / "http_rows")
    info = folder / "http_rows-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA, "utf-8")
    points = "[spark_job_orchestrator.connectors]\nrecords = http_rows:CONNECTOR\n"
    (info / "entry_points.txt").write_text(points, "utf-8")
    monkeypatch.syspath_prepend(folder)
    zip_bytes.cache_clear()  # a worker packs a package once; here each test has its own
    for name in ("http_rows", "http_rows.options", "http_rows.source", "http_rows.sink"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))  # undone at last: no import stays
        monkeypatch.delitem(sys.modules, name)


@dataclass
class RecordServer:
    """Serves records, and keeps those that it gets; `together` posts wait for each other."""

    records: Sequence[dict[str, Any]] = ()
    together: int = 1
    url: str = ""
    posted: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._barrier = threading.Barrier(self.together)
        self._lock = threading.Lock()

    def take(self, records: list[dict[str, Any]]) -> None:
        self._barrier.wait(timeout=60)
        with self._lock:
            self.posted += records


@contextmanager
def record_server(records: Sequence[dict[str, Any]] = (), *, together: int = 1) -> Iterator[RecordServer]:
    found = RecordServer(records, together)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(json.dumps(found.records).encode())

        def do_POST(self) -> None:
            found.take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(b"{}")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_port}/records"
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
