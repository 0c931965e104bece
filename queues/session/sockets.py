"""The sockets that kazoo works on: connected within seconds, and encrypted as we want it."""

import math
import select
import socket
import ssl
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from queues.session.peers import is_server_of
from queues.session.settings import Tls

# kazoo would wait for a whole session timeout at a host that swallows packets, with the others untried.
_CONNECT_SECONDS = 5.0


class Sockets(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """kazoo's threads and sockets, the sockets made by us."""

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> socket.socket:
        """Connect; called by kazoo with an address that was looked up."""
        connected = socket.create_connection(address, min(timeout or _CONNECT_SECONDS, _CONNECT_SECONDS))
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._secured(connected, hostname)
        except BaseException:
            connected.close()
            raise

    def _secured(self, connected: socket.socket, _hostname: str | None) -> socket.socket:
        return connected

    def select(self, read: Any, write: Any, _broken: Any, timeout: float | None = None) -> Any:
        """Wait for sockets by one `poll`.

        kazoo makes, fills and closes a selector at each look: a sixth of the time of a busy client.
        """
        look = select.poll()
        for item in {*read, *write}:
            look.register(item, (item in read and select.POLLIN) | (item in write and select.POLLOUT))
        ready = dict(look.poll(None if timeout is None else math.ceil(timeout * 1000)))
        # An error or a hang-up shows when somebody reads or writes.
        readable = [item for item in read if ready.get(item.fileno(), 0) & ~select.POLLOUT]
        writable = [item for item in write if ready.get(item.fileno(), 0) & ~select.POLLIN]
        return readable, writable, []


class OwnSockets(Sockets):
    """The same to a server of one user on this host alone."""

    def __init__(self, user: int) -> None:
        super().__init__()
        self._user = user

    def _secured(self, connected: socket.socket, _hostname: str | None) -> socket.socket:
        if not is_server_of(connected, self._user):
            # As if nothing listened there: when our server has ended, anybody may.
            raise ConnectionRefusedError(f"{connected.getpeername()} is not a server of user {self._user}")
        return connected


class TlsSockets(Sockets):
    """The same with TLS.

    kazoo's own way trusts the system's list beside the given CA, and leaves host names unchecked.
    """

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._tls = tls

    def _secured(self, connected: socket.socket, hostname: str | None) -> socket.socket:
        return self._tls.context().wrap_socket(connected, server_hostname=hostname)

    def select(self, read: Any, write: Any, broken: Any, timeout: float | None = None) -> Any:
        """Wait for sockets; what TLS has decrypted but not handed out is there already.

        No select of the system shows it, so a second reply in one record would wait for the next ping.
        """
        pending = [item for item in read if isinstance(item, ssl.SSLSocket) and item.pending()]
        if not pending:
            return super().select(read, write, broken, timeout)
        readable, writable, others = super().select(read, write, broken, 0)
        return [*pending, *(item for item in readable if item not in pending)], writable, others
