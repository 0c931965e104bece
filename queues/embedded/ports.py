"""Free TCP ports for a server that is about to start."""

import random
import socket
from contextlib import ExitStack

LOWEST_PORT, HIGHEST_PORT = 20_000, 29_999
"""Below the range from which Linux gives ports to outgoing connections (32768 and up).

A port of that range may be gone as soon as it was found free, and a client which tries again and again
to reach a stopped server there can connect to itself and keep the server's port.
"""

TRIES = 200


def is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen there now."""
    with ExitStack() as held:
        return _hold(held, host, port)


def free_ports(host: str, count: int) -> list[int]:
    """Return `count` different ports that are free now.

    Another process can still be faster; who starts a server on one of them must be ready to try again.
    Raises OSError when none can be had.
    """
    found: list[int] = []
    with ExitStack() as held:  # all are held until the last is found, so that none comes twice
        for _ in range(TRIES):
            if len(found) == count:
                return found
            port = random.randint(LOWEST_PORT, HIGHEST_PORT)  # noqa: S311 - nothing secret about a port
            if _hold(held, host, port):
                found.append(port)
    raise OSError(f"no free port between {LOWEST_PORT} and {HIGHEST_PORT} on {host}")


def _hold(held: ExitStack, host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
    # As ZooKeeper does it: connections of the server before, in TIME_WAIT, do not keep the port.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1)  # two may bind with SO_REUSEADDR, only one may listen
    except OSError:
        return False
    return True
