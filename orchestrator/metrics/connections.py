"""Bounds the connections of a server, so that clients that hold them open cannot block others."""

import socket
import threading
import time
from contextlib import suppress

AT_ONCE = 16
MOST_SECONDS = 20.0  # for a request with its response; Prometheus gives up after 10 s
_END_SECONDS = 0.5  # until a connection that was ended is closed


class Connections:
    """At most `AT_ONCE` connections, each for `MOST_SECONDS`. A further one ends the oldest."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Each with its deadline and a second descriptor, because the first may soon be reused by the system.
        self._open: dict[socket.socket, tuple[socket.socket, float]] = {}

    def admit(self, connection: socket.socket) -> bool:
        """Whether a connection is accepted; the oldest one is ended for it if needed. Raises OSError."""
        with self._changed:
            if len(self._open) >= AT_ONCE:
                self._end_oldest()
                if not self._changed.wait_for(lambda: len(self._open) < AT_ONCE, _END_SECONDS):
                    return False
            self._open[connection] = (connection.dup(), time.monotonic() + MOST_SECONDS)
            return True

    def forget(self, connection: socket.socket) -> None:
        """Remove a connection that has ended."""
        with self._changed:
            if (found := self._open.pop(connection, None)) is not None:
                found[0].close()
                self._changed.notify()

    def end_late(self) -> None:
        """End connections past their deadline."""
        now = time.monotonic()
        with self._changed:
            for copy, deadline in self._open.values():
                if now >= deadline:
                    _end(copy)

    def _end_oldest(self) -> None:
        for connection, (copy, deadline) in self._open.items():
            if deadline:  # not ended yet
                self._open[connection] = (copy, 0.0)
                _end(copy)
                return


def _end(copy: socket.socket) -> None:
    with suppress(OSError):  # it has ended already
        copy.shutdown(socket.SHUT_RDWR)
