"""Whose socket is at the other end of a connection on loopback, as Linux tells in /proc/net/tcp.

Any user may listen at a port that a server of ours has left, and gets what is sent there.
"""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ESTABLISHED, _LISTENING = "01", "0A"
_MAPPED = "0000000000000000FFFF0000"  # an IPv4 address on a socket of IPv6, as Java has them


class _Row(NamedTuple):
    local: str
    remote: str
    state: str
    uid: int
    inode: int  # 0: no process has it, or none yet


def is_ours_to_answer(client: socket.socket) -> bool:
    """Whether an accepted connection comes from a process of this user."""
    return _owners(client) == [(os.geteuid(), True)]


def is_server_of(server: socket.socket, user: int) -> bool:
    """Whether the listener at the other end is a process of this user on this host.

    A connection that is not accepted yet has no owner, and is its listener's.
    """
    accepted = [uid for uid, is_held in _owners(server) if is_held]
    return _listeners(*server.getpeername()[:2]) == {user} and all(uid == user for uid in accepted)


def is_listener_ours(host: str, port: int) -> bool:
    """Whether a process of this user, and no other, listens at exactly this address."""
    return _listeners(host, port) == {os.geteuid()}


def _listeners(host: str, port: int) -> set[int]:
    place = _hex(host, port)
    return {row.uid for row in _rows() if row.state == _LISTENING and row.local == place}


def _owners(connection: socket.socket) -> list[tuple[int, bool]]:
    """Of the other end: its uid, and whether a process holds it; one that was closed is not established."""
    here, there = (_hex(*name[:2]) for name in (connection.getsockname(), connection.getpeername()))
    return [
        (row.uid, row.inode != 0)
        for row in _rows()
        if (row.local, row.remote, row.state) == (there, here, _ESTABLISHED)
    ]


def _rows() -> Iterator[_Row]:
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text("ascii").splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            fields = line.split()
            local, remote = (field.removeprefix(_MAPPED) for field in fields[1:3])
            yield _Row(local, remote, fields[3], int(fields[7]), int(fields[9]))


def _hex(host: str, port: int) -> str:
    """As it stands in the table: the address in the order of the machine's bytes."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
