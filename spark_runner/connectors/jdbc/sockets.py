"""Connections of tasks, which have no JDBC driver: how long they wait, and whom they trust."""

import socket
import ssl
from functools import partial

from spark_runner.connectors.errors import ConnectorError

CONNECT_SECONDS = 30.0
_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 300_000}
"""So a host that vanished is missed within minutes. The last one, in ms, also limits how long a server that
is there may read nothing of what is sent."""


def keep_alive(opened: socket.socket) -> None:
    """Send at once, and miss a host that vanished within minutes."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in filter(partial(hasattr, socket), _ALIVE):
        opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), _ALIVE[name])


def tls_context(authorities: str) -> ssl.SSLContext:
    """The settings of TLS that trust the certificates in this file, or those of the system."""
    try:
        return ssl.create_default_context(cafile=authorities or None)
    except OSError as error:
        raise ConnectorError(
            f"the certificates of authorities in '{authorities}', which option 'url' names, cannot be read"
            f" on this host: {error}"
        ) from error
