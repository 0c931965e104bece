"""The attacked programs, as root sees them; the attacker does not need to discover them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

_ANY_HOST = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@dataclass(frozen=True, slots=True)
class Target:
    """The knowledge of an attacker: more than another user of the host could obtain."""

    pids: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()
    """Ports on which its processes listen."""

    folders: tuple[Path, ...] = ()
    """Its state and its cache; every user can traverse their parents."""

    files: tuple[Path, ...] = ()
    """All files in them."""

    secrets: tuple[str, ...] = ()
    """Secrets that no process list may show."""

    zookeeper: str = ""
    nodes: tuple[str, ...] = ()
    """Its ZooKeeper as `host:port`, and the nodes in it."""

    digest: str = ""
    sasl: tuple[str, str] | None = None
    """Logins of the attacker: `user:password` of the scheme digest; user and password of SASL."""


def family(pid: int) -> tuple[int, ...]:
    """A process and all its descendants, which may have their own sessions."""
    return (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True)))


def listening(pids: tuple[int, ...]) -> tuple[int, ...]:
    """The ports of these processes, all of which must be on loopback."""
    found = [connection for pid in pids for connection in _connections(pid)]
    beyond = [connection.laddr for connection in found if connection.laddr.ip not in _ANY_HOST]
    assert not beyond, f"reached from other hosts: {beyond}"
    return tuple(sorted({connection.laddr.port for connection in found}))


def _connections(pid: int) -> Iterator[Any]:
    with suppress(psutil.NoSuchProcess):
        for connection in psutil.Process(pid).net_connections("inet"):
            is_udp = connection.status == psutil.CONN_NONE and not connection.raddr
            if connection.status == psutil.CONN_LISTEN or is_udp:
                yield connection


def contents(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """The folders and all files below them, except sockets and links."""
    return tuple(
        path
        for folder in folders
        for path in (folder, *sorted(folder.rglob("*")))
        if not path.is_symlink() and (path.is_dir() or path.is_file())
    )
