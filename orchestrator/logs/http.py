"""HTTP answers with limits: a maximum size and a maximum total time, over connections of urllib3.

urllib3 limits the time of each read, but not the total: a peer that sends a byte from time to time would
occupy a thread without end. Callers handle redirects, retries and the texts of errors.
"""

import contextlib
import http.client
import io
import math
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

_PIECE_BYTES = 64 * 1024  # small, because compressed data may expand a thousandfold
_SLACK_SECONDS = 0.01  # a timeout of the kernel may end this much early
# The repr of the connection, also that of a subclass.
_OBJECT = re.compile(r"^(?:<?[\w.]*Connection\w*[(< ].*?[>)]: (?=[A-Z])|\w+\(host=[^)]*\): )")
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)  # monotonic


class AnswerTooLarge(HTTPError):
    """An answer exceeds its limit in bytes."""


class AnswerTooSlow(HTTPError):
    """An answer did not end within its time limit."""


Read = Callable[[urllib3.BaseHTTPResponse], bytes]


@contextmanager
def answer_within(max_bytes: int, seconds: float) -> Iterator[Read]:
    """Limit all that is sent and received inside; yields a function that reads the body of a response.

    The connections must be `PlainConnection` or `SecureConnection`. Raises AnswerTooLarge, AnswerTooSlow.
    The name resolver has its own limits.
    """
    deadline = time.monotonic() + seconds
    token = _deadline.set(deadline)

    def read(response: urllib3.BaseHTTPResponse) -> bytes:
        try:
            return _read(response, max_bytes, deadline)
        except BaseException:
            response.close()  # the rest must not be read as the answer to a later request
            raise

    try:
        yield read
    except (TimeoutError, urllib3.exceptions.TimeoutError):
        if time.monotonic() < deadline - _SLACK_SECONDS:
            raise
        # Without a cause: callers that show the innermost error would show that cause.
        raise AnswerTooSlow(f"an answer that did not end in {seconds:g} s") from None
    finally:
        _deadline.reset(token)


def _read(response: urllib3.BaseHTTPResponse, max_bytes: int, deadline: float) -> bytes:
    data = bytearray()
    while piece := response.read1(_PIECE_BYTES):
        data += piece
        if len(data) > max_bytes:
            raise AnswerTooLarge(f"an answer of more than {max_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(data)


def plain_words(words: str) -> str:
    """The text of an error of urllib3, without the connection at its beginning."""
    return _OBJECT.sub("", words).strip()


class _Raw(io.RawIOBase):
    """Reads from a socket until the deadline."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._file = sock, sock.makefile("rb", buffering=0)
        self._deadline, self._timeout = _deadline.get(), sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline == math.inf:
            return self._file.readinto(buffer)
        _limit(self._sock, self._timeout, self._deadline)
        try:
            return self._file.readinto(buffer)
        finally:
            with contextlib.suppress(OSError):  # it was closed meanwhile
                self._sock.settimeout(self._timeout)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Opened:
    """The part of a socket that a response of `http.client` uses."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Raw(self._sock))


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(_Opened(sock), *arguments, **named)  # type: ignore[arg-type]  # it uses this part alone


class PlainConnection(HTTPConnection):
    """A connection to `http://`. `connect` opens the socket in place of urllib3."""

    response_class = _Response

    def __init__(
        self, *arguments: Any, connect: Callable[[], socket.socket] | None = None, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._make = connect

    def _new_conn(self) -> socket.socket:
        return super()._new_conn() if self._make is None else self._make()

    def send(self, data: Any) -> None:
        """Send a part of a request, before the deadline."""
        deadline = _deadline.get()
        if self.sock is not None and deadline != math.inf:
            _limit(self.sock, self.sock.gettimeout(), deadline)
        super().send(data)


class SecureConnection(PlainConnection, HTTPSConnection):
    """A connection to `https://`."""


def _limit(sock: socket.socket, timeout: float | None, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left if timeout is None else min(left, timeout))
