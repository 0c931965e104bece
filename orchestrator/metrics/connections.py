"""Bounds the connections of a server, so that nobody who holds them open keeps others out."""

import socket
import threading
import time
from contextlib import suppress

AT_ONCE = 16
MOST_SECONDS = 20.0  # for a whole request and its answer; Prometheus gives up after ten
_ROOM_SECONDS = 0.5  # until one that was ended has gone


class Connections:
    """`AT_ONCE` of them, each for `MOST_SECONDS`. A further one ends the one that has lasted longest."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # For each a second descriptor, as its own may be that of another connection soon, and its deadline.
        self._open: dict[socket.socket, tuple[socket.socket, float]] = {}

    def admit(self, connection: socket.socket) -> bool:
        """Whether there is room for it: who says nothing has to make room for who comes. Raises OSError."""
        with self._changed:
            if len(self._open) >= AT_ONCE:
                self._end_oldest()
                if not self._changed.wait_for(lambda: len(self._open) < AT_ONCE, _ROOM_SECONDS):
                    return False
            self._open[connection] = (connection.dup(), time.monotonic() + MOST_SECONDS)
            return True

    def forget(self, connection: socket.socket) -> None:
        """It has ended."""
        with self._changed:
            if (found := self._open.pop(connection, None)) is not None:
                found[0].close()
                self._changed.notify()

    def end_late(self) -> None:
        """End those that take too long."""
        now = time.monotonic()
        with self._changed:
            for hand, deadline in self._open.values():
                if now >= deadline:
                    _end(hand)

    def _end_oldest(self) -> None:
        for connection, (hand, deadline) in self._open.items():
            if deadline:  # not ended yet
                self._open[connection] = (hand, 0.0)
                _end(hand)
                return


def _end(hand: socket.socket) -> None:
    with suppress(OSError):  # it has ended by itself
        hand.shutdown(socket.SHUT_RDWR)
