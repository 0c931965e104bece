"""Calls of receivers that are slow, wrong, huge or hostile; and the shown part of an address."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestrator.callbacks.callback import CallbackError, CallbackReply, Callbacks, CallbacksBusy, address
from orchestrator.callbacks.http_post import MAX_ANSWER_BYTES
from orchestrator.config.tables import PoolPolicy
from orchestrator.logs.record.redaction import MASK, Redactor
from orchestrator.model.definition_parts import Callback
from orchestrator.policy.policy import Policy
from tests.receiver import ACKNOWLEDGED, Answerer, Receiver, answer, override, receiver
from tests.servers.secured import Certificates
from tests.waiting import wait_until

BODY = {
    "id": "job",
    "run_key": "key",
    "pool": "default",
    "event": "end",
    "number": 3,
    "attempt": 2,
    "status": "SUCCESS",
    "error": {"message": "zu spät \x00"},
}
LISTED = Policy({"*": PoolPolicy(environment=("*",))})
PATIENT, HASTY = 20.0, 0.5
"""Seconds of a call that must not reach its time limit, and of one that must."""


def call(url: str, seconds: float = PATIENT) -> CallbackReply:
    return Callbacks(check=LISTED.check_callback).call(Callback(url=url, timeout=seconds), BODY)


def failure(url: str, seconds: float = PATIENT) -> str:
    with pytest.raises(CallbackError) as caught:
        call(url, seconds)
    return str(caught.value)


@contextmanager
def raw(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[tuple[int, threading.Event]]:
    """A server of one connection that sends what `talk` sends; the event is set when the client closes it."""
    hung_up = threading.Event()

    def serve() -> None:
        try:
            with listener.accept()[0] as connection:
                talk(connection, hung_up)
        except OSError:
            hung_up.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], hung_up
        thread.join(30)
        assert not thread.is_alive()


def trickle(beginning: bytes, byte: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Never silent for longer than a read may take, and endless."""

    def talk(connection: socket.socket, hung_up: threading.Event) -> None:
        connection.sendall(beginning)
        until = time.monotonic() + 60
        while not hung_up.wait(0.05) and time.monotonic() < until:
            connection.sendall(byte)

    return talk


# ---------------------------------------------------------------------- requests and answers
def test_the_body_goes_as_json_with_a_key_to_know_repetitions_by() -> None:
    with receiver() as there:
        call(there.url + "?token=1")
        call(there.url + "?token=1")
    assert [each.body for each in there.requests] == [BODY, BODY]
    assert there.requests[0] == there.requests[1]
    assert there.requests[0].path == "/ended?token=1"
    assert there.requests[0].headers["Content-Type"] == "application/json"
    assert there.requests[0].headers["Idempotency-Key"] == "key-2-end-SUCCESS-3"


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"code": "SUCCESS"}, None),
        ({"code": "SUCCESS", "data": None, "more": [1]}, None),
        ({"code": "SUCCESS", "data": {}}, None),
        ({"code": "SUCCESS", "data": {"status": None, "more": 1}}, None),
        ({"code": "SUCCESS", "data": {"status": ""}}, None),
        ({"code": "SUCCESS", "data": {"status": "ERROR_FAIL"}}, "ERROR_FAIL"),
        ({"code": "SUCCESS", "data": {"status": "what is this"}}, "what is this"),
    ],
)
def test_the_answer_may_name_another_status(document: object, status: str | None) -> None:
    with receiver(answer(document)) as there:
        assert call(there.url).status == status


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "is not valid JSON"),
        (b"<html>", "is not valid JSON"),
        (b'{"code": "SUCCESS"', "is not valid JSON"),
        (b'{"code": "\xff"}', "is not valid JSON"),
        (b"[" * 60_000, "is not valid JSON"),
        (b'["SUCCESS"]', "is not a JSON object"),
        (b'"SUCCESS"', "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b"{}", "has no code"),
        (b'{"Code": "SUCCESS"}', "has no code"),
        (b'{"code": 200}', "has a code of a wrong type"),
        (b'{"code": null}', "has a code of a wrong type"),
        (b'{"code": "SUCCESS", "data": []}', "has a data of a wrong type"),
        (b'{"code": "SUCCESS", "data": {"status": 1}}', "has a data.status of a wrong type"),
        (b'{"code": "FAILURE"}', 'has the code "FAILURE", which is not SUCCESS'),
        (b'{"code": "success"}', 'has the code "success", which is not SUCCESS'),
        (b'{"code": "\\u0000\\u001b[31m"}', 'has the code "\\u0000\\u001b[31m"'),
    ],
)
def test_an_answer_that_does_not_say_success_is_a_failure_though_http_says_200(
    body: bytes, reason: str
) -> None:
    with receiver(answer(body)) as there:
        assert f"its answer {reason}" in failure(there.url)


def test_a_long_code_is_cut() -> None:
    with receiver(answer({"code": "x" * 5_000})) as there:
        assert len(failure(there.url)) < 250


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_an_error_of_http_is_a_failure_though_the_body_says_success(status: int) -> None:
    with receiver(answer({"code": "SUCCESS"}, status=status)) as there:
        assert failure(there.url).endswith(f": HTTP {status}")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiver() as elsewhere:
        redirect = answer({"code": "SUCCESS"}, status=status, headers={"Location": elsewhere.url})
        with receiver(redirect) as there:
            assert failure(there.url).endswith(f"HTTP {status}: redirects are not followed")
        assert elsewhere.requests == []


# ---------------------------------------------------------------------- sizes
def chunked(data: bytes) -> Answerer:
    def write(request: BaseHTTPRequestHandler) -> None:
        request.protocol_version = "HTTP/1.1"
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for start in range(0, len(data), 1000):
            part = data[start : start + 1000]
            request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        request.wfile.write(b"0\r\n\r\n")
        request.close_connection = True

    return write


def padded(size: int) -> bytes:
    document = b'{"code": "SUCCESS"}'
    return document + b" " * (size - len(document))


@pytest.mark.parametrize("write", [answer, chunked], ids=["length", "chunked"])
def test_an_answer_has_64_kib_at_most(write: Callable[[bytes], Answerer]) -> None:
    with receiver(write(padded(MAX_ANSWER_BYTES)), write(padded(MAX_ANSWER_BYTES + 1))) as there:
        assert call(there.url).status is None
        assert "its answer is larger than 65,536 bytes" in failure(there.url)


def test_no_more_of_an_endless_answer_is_read() -> None:
    sent = [0]

    def talk(connection: socket.socket, hung_up: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while sent[0] < 50_000_000 and not hung_up.is_set():
            sent[0] += connection.send(b" " * 65_536)

    with raw(talk) as (port, hung_up):
        assert "its answer is larger than" in failure(f"http://127.0.0.1:{port}/")
        assert hung_up.wait(30)
    assert sent[0] < 50_000_000  # the buffers of both sides


def test_endless_headers_are_a_failure() -> None:
    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000)
        connection.recv(65_536)

    with raw(talk) as (port, _):
        assert "its answer is not HTTP" in failure(f"http://127.0.0.1:{port}/")


# ---------------------------------------------------------------------- time
@pytest.mark.parametrize(
    ("scheme", "beginning", "byte"),
    [
        ("http", b"", b""),
        ("http", b"HTTP/1.1 200 O", b"K"),
        ("http", b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        ("http", b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
        ("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
        ("http", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        ("http", b"HTTP/1.1 200 OK\r\n\r\n" + b'{"code": "SUCCESS"}', b" "),
        ("https", b"", b""),
        ("https", b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb", b"\x00"),
    ],
    ids=[
        "silent",
        "status",
        "header",
        "headers",
        "continues",
        "body",
        "chunks",
        "after-the-answer",
        "tls-silent",
        "tls-handshake",
    ],
)
def test_a_server_that_trickles_holds_no_call_longer_than_its_timeout(
    scheme: str, beginning: bytes, byte: bytes
) -> None:
    with raw(trickle(beginning, byte)) as (port, hung_up):
        # The trusted authorities of this machine are loaded before the connection is made.
        seconds = HASTY if scheme == "http" else 4 * HASTY
        reason = failure(f"{scheme}://127.0.0.1:{port}/", seconds)
        assert reason.endswith(f": no answer within {seconds:g} s")
        assert byte == b"" or hung_up.wait(30)
        hung_up.set()


def test_a_server_that_takes_no_connection_holds_no_call() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        crowd = []
        try:  # until its backlog is full: further connections are neither accepted nor refused
            for _ in range(3):
                crowd.append(socket.socket())
                crowd[-1].setblocking(False)
                crowd[-1].connect_ex(listener.getsockname())
            begun = time.monotonic()
            assert failure(f"http://127.0.0.1:{listener.getsockname()[1]}/", HASTY).endswith("within 0.5 s")
            assert time.monotonic() - begun < PATIENT  # not the time after which the kernel gives up
        finally:
            for member in crowd:
                member.close()


def test_an_error_of_a_refused_or_unresolved_host_has_its_name_and_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert failure(f"http://127.0.0.1:{port}/x") == f"http://127.0.0.1:{port}: Connection refused"
    assert failure("http://no-such-host.invalid/x").startswith("http://no-such-host.invalid: ")
    assert failure("http://a..b/x") == "http://a..b: its host is not a valid name"
    with raw(lambda *_: None) as (port, _):
        assert failure(f"http://127.0.0.1:{port}/x").startswith(f"http://127.0.0.1:{port}: ")


# ---------------------------------------------------------------------- certificates
@pytest.fixture
def guarded(certificates: Certificates) -> Iterator[Receiver]:
    """A receiver with a certificate for `localhost`."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server)
    with receiver(ACKNOWLEDGED, tls=tls) as there:
        yield there


def test_a_trusted_certificate_is_enough(
    guarded: Receiver, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certificates.ca)
    assert call(guarded.url).status is None
    assert guarded.requests[0].body == BODY


def test_an_untrusted_certificate_is_a_failure_and_the_server_receives_nothing(
    guarded: Receiver, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "its certificate is not trusted" in failure(guarded.url)
    monkeypatch.setenv("SSL_CERT_FILE", certificates.other_ca)
    assert "its certificate is not trusted" in failure(guarded.url)
    assert guarded.requests == []


def test_a_certificate_of_another_host_is_a_failure(
    guarded: Receiver, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certificates.ca)
    assert "its certificate is not trusted" in failure(guarded.url.replace("localhost", "127.0.0.1"))
    assert guarded.requests == []


def test_a_server_without_tls_is_a_failure() -> None:
    with receiver() as there:
        assert ": no TLS with it: " in failure(there.url.replace("http:", "https:"))
    assert there.requests == []


# ---------------------------------------------------------------------- addresses
def test_variables_of_the_workers_environment_are_filled_in_at_the_time_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    callbacks, known = Callbacks(), Redactor()
    monkeypatch.setattr("orchestrator.callbacks.callback.REDACTOR", known)
    with receiver() as there:
        monkeypatch.setenv("WHERE", there.url.removesuffix("/ended"))
        for secret in ("first", "${env:WHERE}"):  # the value of a variable is not expanded again
            monkeypatch.setenv("SECRET", secret)
            callbacks.call(Callback(url="${env:WHERE}/of/${env:SECRET}?x=1"), BODY)
        paths = [each.path for each in there.requests]
    assert paths[0] == "/of/first?x=1"
    assert "WHERE" in paths[1]
    assert known.mask("the first one") == f"the {MASK} one", "logs show none of it"
    assert known.mask(there.url) == there.url


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_missing_is_named(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    if value is not None:
        monkeypatch.setenv("NOT_THERE", value)
    reason = "the environment of this worker has no variable NOT_THERE"
    assert failure("${env:NOT_THERE}") == f"${{env:NOT_THERE}}: {reason}"
    assert failure("https://there/${env:NOT_THERE}") == f"https://there: {reason}"


@pytest.mark.parametrize(
    "value",
    [
        "ftp://there/x",
        "there/x",
        "http://",
        "http:///x",
        "http://there:99999/",
        "http://there:s3cret/@x",
        "file:///etc/x",
    ],
)
def test_a_variable_that_holds_no_address_is_a_failure_that_does_not_show_it(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", value)
    reason = failure("${env:WHERE}")
    assert reason.startswith("${env:WHERE}: its URL ")
    assert value not in reason
    assert "s3cret" not in reason


@pytest.mark.parametrize("value", ["x\r\nEvil: 1", "x y", "x\x7f", "x\udcff"])
def test_the_value_of_a_variable_cannot_add_to_the_request(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PART", value)
    with receiver() as there:
        assert "characters that no URL may have" in failure(there.url + "${env:PART}")
    assert there.requests == []


def test_user_and_password_are_sent_as_a_login() -> None:
    with receiver() as there:
        call(there.url.replace("//", "//ada:p%40ss@"))
    assert there.requests[0].headers["Authorization"] == "Basic YWRhOnBAc3M="
    assert "ada" not in there.requests[0].headers["Host"]


def test_other_scripts_in_a_path_are_quoted_once() -> None:
    with receiver() as there:
        call(there.url + "/fertig/ä?was=ü%20x")
    assert there.requests[0].path == "/ended/fertig/%C3%A4?was=%C3%BC%20x"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://there/of/secret?token=secret#secret", "https://there"),
        ("https://ada:secret@there:8443/x", "https://there:8443"),
        ("https://secret@there?token=secret", "https://there"),
        ("https://ada:sec@ret@there/x", "https://there"),
        ("http://[::1]:80/secret", "http://[::1]:80"),
        ("https://${env:USER_AND_SECRET}@${env:HOST}:${env:PORT}/x", "https://${env:HOST}:${env:PORT}"),
        ("${env:URL}/secret", "${env:URL}"),
        ("https://ada:sec/ret@there/x", "its URL"),
        ("https://ada:sec?ret@there/x", "its URL"),
        ("https://ada:sec#ret@there/x", "its URL"),
    ],
)
def test_scheme_host_and_port_of_an_address_are_shown_and_no_more(url: str, shown: str) -> None:
    assert address(url) == shown


@pytest.mark.parametrize(
    "broken",
    [
        answer(b"no json"),
        answer({"code": "FAILED"}),
        answer({"code": "SUCCESS"}, status=500),
        answer({"code": "SUCCESS"}, status=302, headers={"Location": "/"}),
        answer(padded(MAX_ANSWER_BYTES + 1)),
    ],
)
def test_no_failure_reveals_secrets_of_its_address(broken: Answerer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-token")
    with receiver(broken) as there:
        url = there.url.replace("//", "//ada:s3cret-word@") + "/s3cret-path/${env:TOKEN}?key=s3cret-key"
        with pytest.raises(CallbackError) as caught:
            call(url)
        assert len(there.requests) == 1
    error: BaseException | None = caught.value
    while error is not None:  # as a traceback would show it
        assert "s3cret" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# ---------------------------------------------------------------------- the document
def test_the_receiver_in_the_document_handles_a_repetition_once(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text("utf-8")
    source = page.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(source.rpartition("\nHTTPServer(")[0], names)  # noqa: S102 - without its last line, which serves for ever
    with HTTPServer(("127.0.0.1", 0), names["Jobs"]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        for _ in range(2):
            assert call(f"http://127.0.0.1:{server.server_address[1]}/").status is None
        server.shutdown()
        thread.join()
    assert capsys.readouterr().out == "job end SUCCESS\n"


# ---------------------------------------------------------------------- many at once
def test_eight_calls_are_made_at_once_half_of_them_to_one_receiver_and_no_more() -> None:
    callbacks, replies = Callbacks(), list[Any]()

    def wait(request: BaseHTTPRequestHandler) -> None:
        there.released.wait(PATIENT)
        ACKNOWLEDGED(request)

    def call_one(url: str) -> None:
        replies.append(callbacks.call(Callback(url=url, timeout=PATIENT), BODY))

    with receiver(wait) as there, receiver(wait) as other:
        threads = [threading.Thread(target=call_one, args=(to.url,)) for to in (there, other) * 4]
        for thread in threads:
            thread.start()
        there.wait_requests(4)
        other.wait_requests(4)
        with pytest.raises(CallbacksBusy):
            callbacks.call(Callback(url="http://elsewhere"), BODY)
        there.released.set()
        for thread in threads:
            thread.join(PATIENT)
        assert (len(replies), len(there.requests), len(other.requests)) == (8, 4, 4)
        call_one(there.url)


def test_a_failed_call_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    callbacks = Callbacks(1)
    with receiver(answer(b""), ACKNOWLEDGED) as there:
        for url in ("${env:NOT_THERE}", "http://a..b/", there.url):
            with pytest.raises(CallbackError):
                callbacks.call(Callback(url=url), BODY)
        callbacks.call(Callback(url=there.url), BODY)


def test_no_thread_or_connection_is_left() -> None:
    before = threading.active_count()
    with receiver(ACKNOWLEDGED, override("SUCCESS")) as there:
        call(there.url)
        call(there.url)
    with raw(trickle(b"HTTP/1.1 200 OK\r\nX: ", b"x")) as (port, _):
        failure(f"http://127.0.0.1:{port}/", HASTY)
    wait_until(lambda: threading.active_count() <= before, 10, "all threads have ended")
