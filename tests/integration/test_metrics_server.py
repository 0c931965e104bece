"""The pages of the metrics server, its access rules, and clients that try to block it."""

import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from orchestrator.config.listening import Listening
from orchestrator.metrics import pages, server
from orchestrator.metrics.pages import Probe
from orchestrator.metrics.server import serving
from orchestrator.model.errors import SettingsError
from tests.servers.secured import Certificates
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

TOKEN = "0123456789abcdef"  # noqa: S105 - of this test
LIVE: dict[str, str] = {}
Serve = Callable[..., int]
Answer = tuple[int, str]


def _live() -> str:
    return LIVE.get("loop", "")


@pytest.fixture
def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    Gauge("some", "A gauge", registry=made).set(7)
    return made


@pytest.fixture
def serve(registry: CollectorRegistry) -> Iterator[Serve]:
    """Serve a registry and two probes; return the port."""
    LIVE.clear()
    with ExitStack() as stack:

        def start(**listening: object) -> int:
            probes = [Probe("livez", {"loop": _live, "other": lambda: ""}), Probe("readyz")]
            given = Listening.model_validate({"address": "127.0.0.1:0", **listening})
            return int(stack.enter_context(serving(given, registry, probes)).rpartition(":")[2])

        yield start


def get(port: int, target: str, method: str = "GET", **headers: str) -> Answer:
    return _answer(HTTPConnection("127.0.0.1", port, timeout=20), target, method, headers)


def _answer(connection: HTTPConnection, target: str, method: str, headers: dict[str, str]) -> Answer:
    connection.request(method, target, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_nothing_listens_without_an_address(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "bind", lambda *_: pytest.fail("something listens"))
    with serving(Listening(), registry, []) as url:
        assert url == ""
    assert not [thread for thread in threading.enumerate() if thread.name == "metrics"]


def test_metrics_are_served_on_loopback(serve: Serve) -> None:
    port = serve()
    status, body = get(port, "/metrics")
    assert (status, "some 7.0" in body.splitlines()) == (200, True)
    assert get(port, "/metrics", "HEAD") == (200, "")
    with socket.socket() as elsewhere, pytest.raises(OSError, match="refused"):
        elsewhere.connect(("127.0.0.2", port))


def test_a_probe_says_ok_or_each_check(serve: Serve) -> None:
    port = serve()
    assert get(port, "/livez") == (200, "ok\n")
    assert get(port, "/livez?verbose") == (200, "[+]loop ok\n[+]other ok\nlivez check passed\n")
    LIVE["loop"] = "its thread\nhas ended"
    failed = "[-]loop failed: its thread has ended\n[+]other ok\nlivez check failed\n"
    assert get(port, "/livez") == get(port, "/livez?verbose=1") == (500, failed)
    assert get(port, "/readyz") == (200, "ok\n")


def test_a_check_that_raises_has_failed_and_shows_no_trace(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.LIVE", None)
    status, body = get(serve(), "/livez")
    assert (status, body.splitlines()[0]) == (500, "[-]loop failed: the check has raised an error")
    assert "Traceback" not in body


def test_a_collector_that_raises_is_no_trace_for_the_reader(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: CollectorRegistry) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(CollectorRegistry, "collect", broken)
    assert get(serve(), "/metrics") == (500, "reading the metrics has failed, see the log\n")


@pytest.mark.parametrize(
    ("target", "method", "status"),
    [("/", "GET", 404), ("/metrics/", "GET", 404), ("/../etc/passwd", "GET", 404), ("/livez", "POST", 501)],
)
def test_there_is_nothing_else(serve: Serve, target: str, method: str, status: int) -> None:
    found, body = get(serve(), target, method)
    assert found == status
    assert "Traceback" not in body


# ---------------------------------------------------------------------- access
def test_with_a_token_only_whether_a_probe_passes_is_for_everybody(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n", "utf-8")
    port = serve(token_file=tmp_path / "token")
    for wrong in ({}, {"Authorization": "Bearer 0123456789abcdeX"}, {"Authorization": TOKEN}):
        assert get(port, "/metrics", **wrong) == (401, "a bearer token is required\n")
        assert get(port, "/livez?verbose", **wrong)[0] == 401
        assert get(port, "/livez", **wrong) == (200, "ok\n")
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert get(port, "/metrics", **right)[0] == get(port, "/livez?verbose", **right)[0] == 200
    LIVE["loop"] = "a word about the inside"
    assert get(port, "/livez") == (500, "livez check failed\n")
    assert "a word about the inside" in get(port, "/livez", **right)[1]


def test_with_a_certificate_it_speaks_tls_alone(serve: Serve, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        unavailable("no openssl to make certificates with")
    certificates = Certificates(tmp_path)
    port = serve(certificate_file=certificates.server)
    trusting = ssl.create_default_context(cafile=certificates.ca)
    connection = HTTPSConnection("localhost", port, timeout=20, context=trusting)
    assert _answer(connection, "/livez", "GET", {}) == (200, "ok\n")
    with pytest.raises(OSError):  # noqa: PT011 - a reset, or an end without data
        get(port, "/livez")


@pytest.mark.parametrize("text", ["", "short", "with a space in it, so none", "ü" * 20, "x" * 5000], ids=len)
def test_an_invalid_token_is_refused(serve: Serve, tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text, "utf-8")
    with pytest.raises(SettingsError, match="holds no token: 16 to 4096 printable characters"):
        serve(token_file=tmp_path / "token")


def test_files_that_cannot_be_used_and_an_address_that_is_taken_are_refused(
    serve: Serve, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=r"token_file .*cannot be read"):
        serve(token_file=tmp_path / "none")
    (tmp_path / "junk").write_text("junk", "utf-8")
    with pytest.raises(SettingsError, match=r"certificate_file .*cannot be used with its key"):
        serve(certificate_file=tmp_path / "junk")
    port = serve()
    with pytest.raises(SettingsError, match=r"listened on: Address already in use.*metrics-address"):
        serve(address=str(port))


# ---------------------------------------------------------------------- bounds
def test_a_drip_of_bytes_is_ended(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", serve()), 20) as slow:

        def is_ended() -> bool:
            try:
                slow.sendall(b"X")
            except OSError:
                return True
            return False

        wait_until(is_ended, 10, "it is ended")


def test_a_reader_that_is_silent_is_ended(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_QUIET_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", serve()), 20) as silent:
        assert silent.recv(100) == b""


@pytest.mark.parametrize("is_secured", [False, True])
def test_a_client_that_holds_all_connections_keeps_no_other_out(
    serve: Serve, tmp_path: Path, *, is_secured: bool
) -> None:
    context = None
    if is_secured:
        if shutil.which("openssl") is None:
            unavailable("no openssl to make certificates with")
        certificates = Certificates(tmp_path)
        context = ssl.create_default_context(cafile=certificates.ca)
        port = serve(certificate_file=certificates.server)
    else:
        port = serve()

    def probe() -> Answer:
        if context is None:
            return get(port, "/livez")
        return _answer(HTTPSConnection("localhost", port, timeout=20, context=context), "/livez", "GET", {})

    with ExitStack() as stack:
        # Each for as long as a request may last, without data or in the middle of a request.
        for number in range(3 * server.AT_ONCE):
            held = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            held.sendall(b"GET /livez HT" * (number % 2))
            if number >= server.AT_ONCE:
                assert probe() == (200, "ok\n")
        threads = [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]
        assert len(threads) <= server.AT_ONCE
    wait_until(lambda: probe() == (200, "ok\n"), 10, "it serves again")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"A: some\r\n" * 10_000 + b"\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"A: %s\r\n" % (b"x" * 1000) * 50 + b"\r\n",
        b"\0\xff" * 50_000,
        b"GET /metrics HTTP/1.1\r\nAuthorization: \xff\xfe\r\nContent-Length: -1\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 100_000,
    ],
    ids=["line", "header", "headers", "bytes", "junk", "odd", "body"],
)
def test_a_request_that_is_huge_or_odd_is_refused_and_changes_nothing(serve: Serve, sent: bytes) -> None:
    port = serve()
    with socket.create_connection(("127.0.0.1", port), 20) as hostile:
        found = b""
        with suppress(OSError):  # closed while it still sends
            hostile.sendall(sent)
            while more := hostile.recv(65_536):
                found += more
    assert b"Traceback" not in found
    is_small = len(sent) < 1000
    assert (b" 200 " in found.partition(b"\r\n")[0]) == is_small
    assert get(port, "/livez") == (200, "ok\n")


def test_many_readers_at_once_cost_one_collection(
    serve: Serve, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "FRESH_SECONDS", 60.0)
    collected: list[int] = []

    def count() -> float:
        collected.append(1)
        return len(collected)

    Gauge("counted", "How often it was read", registry=registry).set_function(count)
    port = serve()
    with ThreadPoolExecutor(8) as readers:
        answers = list(readers.map(lambda _number: get(port, "/metrics"), range(40)))
    assert {status for status, _ in answers} == {200}
    assert len({body for _, body in answers}) == len(collected) == 1


def test_a_collection_that_hangs_keeps_no_probe_out(
    serve: Serve, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_PATIENCE_SECONDS", 0.1)
    go, begun = threading.Event(), threading.Event()

    def hang() -> float:
        begun.set()
        go.wait(30)
        return 1.0

    Gauge("hanging", "Never read", registry=registry).set_function(hang)
    port = serve()
    with ThreadPoolExecutor(1) as readers:
        first = readers.submit(get, port, "/metrics")
        try:
            assert begun.wait(20)
            assert get(port, "/metrics") == (503, "the previous reading is not finished\n")
            assert get(port, "/livez") == (200, "ok\n")
        finally:
            go.set()
        assert first.result()[0] == 200
