"""ZooKeeper messages that need no client: four-letter words, a login, and a read of the rights on `/`."""

import contextlib
import os
import socket
import struct
import time
from contextlib import ExitStack, suppress
from enum import Enum, auto

from queues.session.client import is_server_of
from queues.session.settings import Login, Tls

ANSWER_TIMEOUT_S = 2.0
"""A healthy server answers in milliseconds; this is also enough for one in a long fsync."""


_LONGEST_ANSWER = 16 * 1024 * 1024  # bytes; `cons` has a line of 200 bytes for each client


def send_four_letter_word(
    address: str, word: str, timeout_s: float = ANSWER_TIMEOUT_S, tls: Tls | None = None
) -> str:
    """Send `word` (ruok, srvr, mntr, stat, cons) to `host:port` and return the whole answer.

    Raises OSError if the server cannot be reached or does not answer in time, or answers without end; with
    `tls`, also if the server is not the one that it verifies, or a file of it cannot be used.
    """
    name, _, port = address.rpartition(":")
    host = name.strip("[]")
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, int(port)), timeout_s))
        if tls is not None:
            connection = stack.enter_context(tls.context().wrap_socket(connection, server_hostname=host))
        answer, deadline = b"", time.monotonic() + timeout_s
        connection.sendall(word.encode("ascii"))
        while chunk := connection.recv(65536):
            answer += chunk
            if len(answer) > _LONGEST_ANSWER or time.monotonic() > deadline:
                raise OSError(f"{address} answers {word} without end")
    return answer.decode("utf-8", "replace")


def server_mode(address: str, timeout_s: float = ANSWER_TIMEOUT_S) -> str | None:
    """Return standalone, leader, follower or observer; None while the server serves no requests."""
    with suppress(OSError):
        for line in send_four_letter_word(address, "srvr", timeout_s).splitlines():
            name, _, value = line.partition(": ")
            if name == "Mode":
                return value.strip()
    return None


LENGTH = struct.Struct("!i")
_LONGEST = 4096  # bytes of a side's first message: ids, times and a session's password
_SECONDS = 10.0
_SESSION_MS = 4_000
_CONNECT = struct.Struct("!iqiqi16s?")  # version, last zxid, timeout, session, its password, read-only
_REQUEST, _REPLY, _COUNT = struct.Struct("!ii"), struct.Struct("!iqi"), struct.Struct("!i")
_AUTH_XID, _AUTH_TYPE, _GET_ACL, _CLOSE = -4, 100, 6, -11
_ALL = 31


def auth_message(login: Login) -> bytes:
    """`AuthPacket` as ZooKeeper's clients send it: scheme and credentials, with a fixed xid."""
    credentials = f"{login.user}:{login.secret()}"
    return _framed(struct.pack("!iii", _AUTH_XID, _AUTH_TYPE, 0) + _text("digest") + _text(credentials))


def read_message(side: socket.socket) -> bytes:
    """One message with its length; raises OSError if it is not ZooKeeper's protocol."""
    header = _exactly(side, LENGTH.size)
    (length,) = LENGTH.unpack(header)
    if not 0 <= length <= _LONGEST:
        raise OSError("the other side does not speak ZooKeeper's protocol")
    return header + _exactly(side, length)


class RootAccess(Enum):
    """Who has rights on `/`."""

    OWN = auto()  # this login alone
    OPEN = auto()  # every client, as ZooKeeper creates it
    OTHER = auto()


def root_access(login: Login, host: str, port: int) -> RootAccess:
    """Who has rights on `/` of a server that this user runs; raises OSError.

    A client's session would cost tens of milliseconds at each start, so the messages are sent directly.
    """
    rights = _rights_on_root(login, host, port)
    if rights.startswith(_only("digest", login.digest_id)):
        return RootAccess.OWN
    return RootAccess.OPEN if rights.startswith(_only("world", "anyone")) else RootAccess.OTHER


def _only(scheme: str, name: str) -> bytes:
    return _COUNT.pack(1) + _COUNT.pack(_ALL) + _text(scheme) + _text(name)


def _rights_on_root(login: Login, host: str, port: int) -> bytes:
    """The list of rights on `/` as ZooKeeper sends it, empty if this login may not read it."""
    with socket.create_connection((host, port), _SECONDS) as server:
        server.settimeout(_SECONDS)
        if not is_server_of(server, os.geteuid()):
            raise ConnectionRefusedError(f"{host}:{port} is not a server of this user")
        server.sendall(_framed(_CONNECT.pack(0, 0, _SESSION_MS, 0, 16, bytes(16), False)))
        read_message(server)
        server.sendall(auth_message(login) + _framed(_REQUEST.pack(1, _GET_ACL) + _text("/")))
        read_message(server)
        reply = read_message(server)[LENGTH.size :]
        with contextlib.suppress(OSError):  # without a close the session ends by its timeout
            server.sendall(
                _framed(_REQUEST.pack(2, _CLOSE))
            )  # no wait: the answer follows a write to the disk
    _, _, error = _REPLY.unpack_from(reply)
    return reply[_REPLY.size :] if error == 0 else b""


def _framed(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


def _text(text: str) -> bytes:
    data = text.encode()
    return LENGTH.pack(len(data)) + data


def _exactly(side: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = side.recv(count - len(data))
        if not more:
            raise ConnectionError("the other side closed the connection")
        data += more
    return data
