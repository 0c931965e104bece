"""Free TCP ports for a server that is about to start."""

import random
import socket
from contextlib import ExitStack

LOWEST_PORT, HIGHEST_PORT = 20_000, 29_999
"""Below the range from which Linux assigns ports to outgoing connections (32768 and up).

Linux may assign a free port of that range at any moment, and a client that keeps trying to reach a stopped
server there can connect to itself and block the server's port.
"""

TRIES = 200


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen on this port now."""
    with ExitStack() as held:
        return _hold(held, host, port)


def free_ports(host: str, count: int) -> list[int]:
    """Return `count` different ports that are free now.

    Another process can still take one of them, so a caller that starts a server there must be ready to retry.
    Raises OSError if there are not enough.
    """
    found: list[int] = []
    with ExitStack() as held:  # all are held until the last is found, so that no port is found twice
        for _ in range(TRIES):
            if len(found) == count:
                return found
            port = random.randint(LOWEST_PORT, HIGHEST_PORT)  # noqa: S311 - a port is no secret
            if _hold(held, host, port):
                found.append(port)
    raise OSError(f"no free port between {LOWEST_PORT} and {HIGHEST_PORT} on {host}")


def _hold(held: ExitStack, host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
    # ZooKeeper sets it too: the previous server's connections in TIME_WAIT do not block the port.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1)  # two sockets can bind with SO_REUSEADDR, but only one can listen
    except OSError:
        return False
    return True
