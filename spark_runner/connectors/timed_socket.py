"""A socket with a deadline for all that is sent and received.

The timeout of a socket limits each call alone: a peer that sends a byte from time to time occupies a task
without end.
"""

import io
import socket
import ssl
import time
from typing import Any


class TimedSocket:
    """The part of a socket that `http.client` uses; `set_deadline` comes before each exchange."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._deadline = sock, time.monotonic()

    def set_deadline(self, seconds: float) -> None:
        """The next exchange ends within so many seconds, or raises TimeoutError."""
        self._deadline = time.monotonic() + seconds

    def fileno(self) -> int:
        """The file descriptor, to poll it."""
        return self._sock.fileno()

    def pending(self) -> int:
        """The bytes that TLS has read from the socket, and that nothing has received yet."""
        return self._sock.pending() if isinstance(self._sock, ssl.SSLSocket) else 0

    def sendall(self, data: bytes) -> None:
        """Send all bytes before the deadline."""
        rest = memoryview(data)
        while rest:
            _limit(self._sock, self._deadline)
            rest = rest[self._sock.send(rest) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """A file of what is received before the deadline."""
        return io.BufferedReader(_Received(self._sock, self._deadline))

    def close(self) -> None:
        """Close the socket, once its file is closed, too."""
        self._sock.close()


class _Received(io.RawIOBase):
    """Reads from a socket until the deadline."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline
        self._file = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        _limit(self._sock, self._deadline)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def _limit(sock: socket.socket, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    sock.settimeout(left)
