"""COPY to a server that speaks while it takes rows."""

import base64
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from spark_runner.connectors.jdbc.wire import Login, Wire, WireError

CHUNKS = [b"row %d\n" % number for number in range(9)]
NOTICE = (b"N", b"SLOG\0VLOG\0C00000\0Mcheckpoint\0\0")
SETTING = (b"S", b"TimeZone\0UTC\0")
FULL = (b"E", b"SERROR\0VERROR\0C53100\0Mthe disk is full\0\0")
READY = (b"Z", b"I")


def packed(*messages: tuple[bytes, bytes]) -> bytes:
    return b"".join(code + struct.pack("!i", len(body) + 4) + body for code, body in messages)


class Server:
    """Takes one connection; sends `words` behind the first chunk of a COPY, and keeps the chunks."""

    def __init__(self, *words: tuple[bytes, bytes]) -> None:
        self.words, self.chunks, self.ends = words, list[bytes](), list[bytes]()
        self.copied = [(b"C", b"COPY 9\0")]
        self.spoke = threading.Event()
        self.login_messages = [(b"R", struct.pack("!i", 0)), READY]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.login = Login("127.0.0.1", self.listener.getsockname()[1], "d", "u", "p", {"sslmode": "disable"})

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        refused = contextlib.suppress(ConnectionError)  # a client that refuses the login reads no further
        with refused, connection, connection.makefile("rb") as stream:

            def body() -> bytes:
                (size,) = struct.unpack("!i", stream.read(4))
                return stream.read(size - 4)

            body()  # of the login
            connection.sendall(packed(*self.login_messages))
            while code := stream.read(1):
                found = body()
                if code == b"Q" and found.startswith(b"COPY"):
                    connection.sendall(packed((b"G", b"\0\0\0")))
                elif code == b"Q":
                    connection.sendall(packed((b"C", b"SET\0"), READY))
                elif code == b"d":
                    self.chunks.append(found)
                    if len(self.chunks) == 1:
                        connection.sendall(packed(*self.words))
                        self.spoke.set()
                else:
                    self.ends.append(code)
                    if code == b"c" and FULL not in self.words:
                        connection.sendall(packed(*self.copied, READY))

    def rows(self) -> Iterator[bytes]:
        """The chunks; the second one follows when the server has spoken."""
        yield CHUNKS[0]
        assert self.spoke.wait(30)
        yield from CHUNKS[1:]


@contextlib.contextmanager
def serving(*words: tuple[bytes, bytes]) -> Iterator[Server]:
    server = Server(*words)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        thread.join(30)
        server.listener.close()
        assert not thread.is_alive()


@pytest.mark.parametrize("words", [(NOTICE,), (SETTING,), (NOTICE, SETTING, NOTICE)])
def test_a_server_that_speaks_during_copy_gets_all_rows(words: tuple[tuple[bytes, bytes], ...]) -> None:
    with serving(*words) as server, Wire(server.login) as wire:
        wire.copy_in("COPY t FROM STDIN", server.rows())
    assert server.chunks == CHUNKS
    assert server.ends == [b"c", b"X"]


def test_an_error_during_copy_ends_it_and_the_connection_takes_further_statements() -> None:
    with serving(NOTICE, FULL, READY) as server, Wire(server.login) as wire:
        with pytest.raises(WireError, match="the disk is full") as caught:
            wire.copy_in("COPY t FROM STDIN", server.rows())
        wire.run("SET x = 1")
    assert caught.value.state == "53100"
    assert server.ends == [b"X"]  # no end of rows that the server would take for all of them
    assert len(server.chunks) < len(CHUNKS)


def test_after_an_error_at_the_end_of_copy_each_statement_gets_its_own_answer() -> None:
    with serving(NOTICE) as server, Wire(server.login) as wire:
        server.copied = [(b"E", b"SERROR\0VERROR\0C22001\0Mtoo long\0\0")]
        for _ in range(2):
            with pytest.raises(WireError, match="too long"):
                wire.copy_in("COPY t FROM STDIN", CHUNKS)
            wire.run("ROLLBACK")


def test_a_server_that_ends_copy_itself_is_an_error() -> None:
    with (
        serving((b"C", b"COPY 1\0")) as server,
        Wire(server.login) as wire,
        pytest.raises(WireError, match="the server ended COPY early") as caught,
    ):
        wire.copy_in("COPY t FROM STDIN", server.rows())
    assert caught.value.state == "08006"
    assert server.ends == [b"X"]


def test_a_host_that_vanishes_is_missed_within_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    made, connect = list[socket.socket](), socket.create_connection

    def kept(*arguments: object, **more: object) -> socket.socket:
        made.append(connect(*arguments, **more))  # type: ignore[arg-type]  # the same ones
        return made[-1]

    monkeypatch.setattr(socket, "create_connection", kept)
    with serving() as server, Wire(server.login):
        (found,) = made
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        limits = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 300_000}
        for name, limit in limits.items():
            if hasattr(socket, name):
                assert found.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == limit, name


def authentication(way: int, rest: bytes = b"") -> tuple[bytes, bytes]:
    return b"R", struct.pack("!i", way) + rest


def test_a_server_that_skips_its_own_proof_of_the_password_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_runner.connectors.jdbc.scram.secrets.token_bytes", lambda size: b"\0" * size)
    nonce = base64.b64encode(b"\0" * 18)
    challenge = b"r=" + nonce + b"theirs,s=" + base64.b64encode(b"salt") + b",i=1"
    asked = [authentication(10, b"SCRAM-SHA-256\0\0"), authentication(11, challenge)]
    with serving() as server:
        server.login_messages = [*asked, authentication(0), READY]
        with pytest.raises(WireError, match="does not prove that it knows the password") as caught:
            Wire(server.login)
    assert caught.value.state == "28P01"
