"""The role of each server of ZooKeeper, asked over TLS too, and why a server has none."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from orchestrator.doctor.ensemble import ServerStatus, connection_lines, servers
from queues import SessionSettings, Tls
from tests.servers.secured import Secured


def only(hosts: str, tls: Tls | None = None) -> ServerStatus:
    (status,) = servers(SessionSettings(hosts, tls=tls))
    return status


def test_a_server_says_its_role_over_tls_to_a_client_with_a_certificate(secured: Secured) -> None:
    status = only(secured.hosts(), secured.certificates.tls)
    assert (status.reached, status.role, status.error) == (True, "standalone", "")
    assert status.version.startswith("3.")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda own, other: replace(own, ca_file=other), "certificate verify failed"),
        (lambda own, _: replace(own, ca_file="/no/such/file"), "No such file"),
        (lambda own, _: replace(own, certificate_file="", key_file=""), "does not answer srvr"),
    ],
    ids=["another authority", "no authority", "no certificate of the client"],
)
def test_a_server_that_tls_does_not_verify_is_reached_without_a_role(
    secured: Secured, change: Callable[[Tls, str], Tls], words: str
) -> None:
    certificates = secured.certificates
    status = only(secured.hosts(), change(certificates.tls, certificates.other_ca))
    assert (status.reached, status.role) == (True, "")
    assert words in status.error


def test_a_server_that_speaks_tls_is_not_misread_in_clear(secured: Secured) -> None:
    status = only(secured.hosts())
    assert (status.reached, status.role) == (True, "")
    assert "does not answer srvr" in status.error


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        (b"srvr is not executed because it is not in the whitelist.\n", "4lw.commands.whitelist"),
        (b"This ZooKeeper instance is not currently serving requests\n", "serves no requests"),
        (b"Mode: \x1b[31mleader\n", "is no ZooKeeper"),
    ],
    ids=["refused", "without a majority", "hostile"],
)
def test_what_an_answer_without_a_role_says(chunk: bytes, words: str) -> None:
    status = _answered(chunk, again=False)
    assert (status.reached, status.role) == (True, "")
    assert words in status.error


def test_an_answer_without_end_is_given_up() -> None:
    assert "without end" in _answered(b"Mode: leader\n" * 4096, again=True).error


def _answered(chunk: bytes, *, again: bool) -> ServerStatus:
    """The status of a server that answers with a chunk, once or without end."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError), listener:
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), connection:
                    if connection.recv(4):
                        connection.sendall(chunk)
                        while again:
                            connection.sendall(chunk)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        return only(f"127.0.0.1:{listener.getsockname()[1]}")
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_each_server_of_an_ensemble_without_an_answer_has_a_line_within_a_second() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        open_port, closed_port = silent.getsockname()[1], closed.getsockname()[1]
        began = time.monotonic()
        lines = connection_lines(f"127.0.0.1:{open_port},127.0.0.1:{closed_port},no-such-host.invalid/folder")
    assert time.monotonic() - began < 2
    assert lines[0].startswith(f"127.0.0.1:{open_port}  accepts connections, but has no majority")
    assert lines[1] == f"127.0.0.1:{closed_port}  not reached: Connection refused"
    assert lines[2].startswith("no-such-host.invalid:2181  not reached: ")
    assert connection_lines(f"127.0.0.1:{open_port}/folder") == [], "the error names the only server anyway"


def test_a_server_that_is_not_reached_says_why_without_a_number() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        status = only(f"127.0.0.1:{closed.getsockname()[1]}")
    assert (status.reached, status.error) == (False, "Connection refused")
