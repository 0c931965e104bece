"""kazoo's client, built from the settings, and its sockets.

After a server of this user has ended, any other user can listen on its port and read what clients send there.
"""

import logging
import math
import os
import select
import socket
import ssl
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id

from queues.model.errors import AccessDenied
from queues.session.connection import Connection
from queues.session.contact import Contact
from queues.session.settings import Acl, SessionSettings, Tls

# A program that configures no logging would see each refused connection above the error that reports it.
logging.getLogger("kazoo").addHandler(logging.NullHandler())

_ESTABLISHED, _LISTENING = "01", "0A"
_MAPPED = "0000000000000000FFFF0000"  # prefix of an IPv4 address on an IPv6 socket, which Java uses


class _Row(NamedTuple):
    local: str
    remote: str
    state: str
    uid: int
    inode: int  # 0: no process holds the socket, or none does yet


def is_ours_to_answer(client: socket.socket) -> bool:
    """Whether an accepted connection comes from a process of this user."""
    return _owners(client) == [(os.geteuid(), True)]


def is_server_of(server: socket.socket, user: int) -> bool:
    """Whether the listener at the other end is a process of this user on this host.

    A connection that is not accepted yet is not yet owned by a process, and belongs to its listener.
    """
    accepted = [uid for uid, is_held in _owners(server) if is_held]
    listeners = {row.uid for row in _listeners(*server.getpeername()[:2])}
    return listeners == {user} and all(uid == user for uid in accepted)


def can_tell_listeners(host: str) -> bool:
    """Whether this system shows who listens at the host: Linux does, for an IPv4 address."""
    try:
        socket.inet_pton(socket.AF_INET, host)
    except OSError:
        return False
    return sys.platform == "linux"


def is_listener_of(group: int, host: str, port: int) -> bool:
    """Whether a process of this group listens at exactly this address, and no other process.

    Another process may be of this user, too. Java may be a script, which starts the process that listens.
    """
    rows = _listeners(host, port)
    if {row.uid for row in rows} != {os.geteuid()}:
        return False
    sockets = {f"socket:[{row.inode}]" for row in rows}
    return sockets <= {link for pid in _members(group) for link in _open_files(pid)}


def _members(group: int) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        with suppress(ValueError, ProcessLookupError):
            if os.getpgid(int(folder.name)) == group:
                yield int(folder.name)


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):  # the process has ended
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                yield str(file.readlink())


def _listeners(host: str, port: int) -> list[_Row]:
    address = _hex(host, port)
    return [row for row in _rows() if row.state == _LISTENING and row.local == address]


def _owners(connection: socket.socket) -> list[tuple[int, bool]]:
    """The uid of the other end, and whether a process holds it; a closed end is not established."""
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
    """The address as the table contains it: in the byte order of the machine."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"


# kazoo would wait a whole session timeout for a host that drops packets, before it tries the others.
_CONNECT_SECONDS = 5.0


# A reply of usual size, and those that wait behind it.
_AHEAD_BYTES = 65_536


class _BufferedSocket(socket.socket):
    """A socket that receives as much as there is: kazoo asks for four bytes, and then for the rest.

    It asks whether there is any before each of the two, too, which then needs no system call.
    """

    def __init__(self, connected: socket.socket) -> None:
        timeout = connected.gettimeout()
        super().__init__(fileno=connected.detach())
        self.settimeout(timeout)
        self._ahead = b""

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Up to `size` bytes; kazoo passes no flags."""
        received = self._ahead or super().recv(max(size, _AHEAD_BYTES), flags)
        self._ahead = received[size:]
        return received[:size]

    def pending(self) -> int:
        """The number of bytes that were received and not returned yet; named as in `ssl`."""
        return len(self._ahead)


class Sockets(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """kazoo's threads, with sockets that this class creates."""

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> socket.socket:
        """Connect; kazoo calls this with a resolved address."""
        connected = socket.create_connection(address, min(timeout or _CONNECT_SECONDS, _CONNECT_SECONDS))
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._secured(connected, hostname)
        except BaseException:
            connected.close()
            raise

    def _secured(self, connected: socket.socket, _hostname: str | None) -> socket.socket:
        return _BufferedSocket(connected)

    def select(self, read: Any, write: Any, _broken: Any, timeout: float | None = None) -> Any:
        """Wait for sockets with one `poll`.

        kazoo creates, fills and closes a selector for each wait: a sixth of the time of a busy client. No
        system call reports data that a socket has received or decrypted and not returned yet.
        """
        pending = [
            item for item in read if isinstance(item, _BufferedSocket | ssl.SSLSocket) and item.pending()
        ]
        if pending:
            return self._with_pending(pending, read, write)
        return self._polled(read, write, timeout)

    def _with_pending(self, pending: list[Any], read: Any, write: Any) -> Any:
        others = [item for item in read if item not in pending]
        readable, writable, _ = self._polled(others, write, 0) if others or write else ([], [], [])
        return [*pending, *readable], writable, []

    @staticmethod
    def _polled(read: Any, write: Any, timeout: float | None) -> Any:
        look = select.poll()
        for item in {*read, *write}:
            look.register(item, (item in read and select.POLLIN) | (item in write and select.POLLOUT))
        ready = dict(look.poll(None if timeout is None else math.ceil(timeout * 1000)))
        # The next read or write reports an error or a hang-up.
        readable = [item for item in read if ready.get(item.fileno(), 0) & ~select.POLLOUT]
        writable = [item for item in write if ready.get(item.fileno(), 0) & ~select.POLLIN]
        return readable, writable, []


class OwnSockets(Sockets):
    """Sockets that connect only to a server of one user on this host."""

    def __init__(self, user: int) -> None:
        super().__init__()
        self._user = user

    def _secured(self, connected: socket.socket, _hostname: str | None) -> socket.socket:
        if not is_server_of(connected, self._user):
            # The same error as if nothing listened there: after the server has ended, any user can listen.
            raise ConnectionRefusedError(f"{connected.getpeername()} is not a server of user {self._user}")
        return super()._secured(connected, _hostname)


class TlsSockets(Sockets):
    """Sockets with TLS.

    kazoo's own TLS also trusts the system's CA list beside the given CA, and does not check host names.
    """

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._tls = tls

    def _secured(self, connected: socket.socket, hostname: str | None) -> socket.socket:
        return self._tls.context().wrap_socket(connected, server_hostname=hostname)


# kazoo's default reaches an hour: a worker would stay disconnected long after ZooKeeper is back. With two
# seconds, 2.8 after jitter, a session of ten seconds can survive the loss of a server.
_MAX_RECONNECT_DELAY_SECONDS = 2.0
_RECONNECT_JITTER = 0.4


class _NoSecrets(logging.LoggerAdapter[logging.Logger]):
    """kazoo's log without its debug lines, which contain passwords and session keys in clear text."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's name
        return level >= logging.INFO and super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs


def acls(settings: SessionSettings) -> list[ACL]:
    """The rights on each node that is created."""
    if settings.rights:
        return [ACL(grant.perms, Id(grant.scheme, grant.id)) for grant in settings.rights]
    return list(CREATOR_ALL_ACL if settings.acl is Acl.CREATOR else OPEN_ACL_UNSAFE)


def build_client(settings: SessionSettings, contact: Contact) -> Any:
    """A client that is not started yet; raises AccessDenied if a file of the settings cannot be used."""
    retry = KazooRetry(
        max_tries=-1, delay=0.1, max_jitter=_RECONNECT_JITTER, max_delay=_MAX_RECONNECT_DELAY_SECONDS
    )
    sasl, digest = settings.sasl, settings.digest
    try:
        if settings.tls is not None:
            settings.tls.context()  # here the error can be raised; kazoo would retry endlessly
        options = None if sasl is None else _sasl_options(sasl.user, sasl.secret())
        auth = None if digest is None else {("digest", f"{digest.user}:{digest.secret()}")}
    except (OSError, UnicodeDecodeError) as error:
        raise AccessDenied(settings.hosts, f"a file of the settings cannot be used: {error}") from error
    client = KazooClient(
        hosts=settings.hosts,
        timeout=settings.session_timeout,
        handler=_sockets(settings),
        default_acl=acls(settings),
        auth_data=auth,
        connection_retry=retry,
        command_retry=KazooRetry(max_tries=0),
        logger=_NoSecrets(logging.getLogger("kazoo")),
    )
    client._connection = Connection(client, retry.copy(), contact, options)  # noqa: SLF001 - no public way
    return client


def _sockets(settings: SessionSettings) -> Sockets:
    if settings.tls is not None:
        return TlsSockets(settings.tls)
    owner = None if settings.digest is None else settings.digest.server_uid
    return Sockets() if owner is None else OwnSockets(owner)


def _sasl_options(user: str, password: str) -> dict[str, str]:
    return {"mechanism": "DIGEST-MD5", "username": user, "password": password}
