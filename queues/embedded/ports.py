"""Free TCP ports for a server that is about to start."""

import random
import socket

LOWEST_PORT, HIGHEST_PORT = 20_000, 29_999
"""Below the range from which Linux assigns ports to outgoing connections (32768 and up).

Linux may assign a free port of that range at any moment, and a client that keeps trying to reach a stopped
server there can connect to itself and block the server's port.
"""

TRIES = 200


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen on this port now."""
    with _socket(host) as listener:
        # ZooKeeper sets it too: the previous server's connections in TIME_WAIT do not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _listens(listener, host, port)


def free_ports(host: str, count: int) -> list[int]:
    """Return `count` different ports that are free now, and that no other call returns for a minute.

    A program that does not call this function can still take one, so a caller that starts a server there must
    be ready to retry. Raises OSError if there are not enough.
    """
    found: list[int] = []
    for _ in range(TRIES):
        if len(found) == count:
            return found
        port = random.randint(LOWEST_PORT, HIGHEST_PORT)  # noqa: S311 - a port is no secret
        if _reserve(host, port):
            found.append(port)
    raise OSError(f"no free port between {LOWEST_PORT} and {HIGHEST_PORT} on {host}")


def _reserve(host: str, port: int) -> bool:
    """Leave a closed connection at the port, if it is free, and return whether it was.

    The connection stays in TIME_WAIT for a minute. Meanwhile a server can listen there, as servers set
    SO_REUSEADDR, but another call cannot bind the port, as it does not.
    """
    with _socket(host) as listener:
        if not _listens(listener, host, port):
            return False
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the connection has it, too
        with socket.create_connection((host, port)):
            listener.accept()[0].close()  # the side that closes first keeps the port in TIME_WAIT
    return True


def _listens(listener: socket.socket, host: str, port: int) -> bool:
    try:
        listener.bind((host, port))
        listener.listen(1)  # two sockets can bind with SO_REUSEADDR, but only one can listen
    except OSError:
        return False
    return True


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
