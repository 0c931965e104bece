"""Answers over HTTP that end: bounded in bytes and in time as a whole, over connections of urllib3.

urllib3 limits the time of each read, never of all of them: a peer that sends a byte now and then would hold a
thread without end. Redirects, repetitions, and the words of an error are up to the caller.
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

_PIECE_BYTES = 64 * 1024  # of what may be compressed a thousandfold
_SLACK_SECONDS = 0.01  # by which a timeout of the kernel may end early
_OBJECT = re.compile(r"^<?[\w.]*Connection\w*[(< ].*?[>)]: (?=[A-Z])")  # the connection, as Python shows it
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)  # monotonic


class AnswerTooLarge(HTTPError):
    """An answer has more bytes than it may have."""


class AnswerTooSlow(HTTPError):
    """An answer did not end in its time."""


Read = Callable[[urllib3.BaseHTTPResponse], bytes]


@contextmanager
def answer_within(max_bytes: int, seconds: float) -> Iterator[Read]:
    """Bound all that is sent and received inside; yields what reads the body of a response.

    The connections have to be `PlainConnection` or `SecureConnection`. Raises AnswerTooLarge, AnswerTooSlow.
    The resolver of names has limits of its own.
    """
    deadline = time.monotonic() + seconds
    token = _deadline.set(deadline)

    def read(response: urllib3.BaseHTTPResponse) -> bytes:
        try:
            return _read(response, max_bytes, deadline)
        except BaseException:
            response.close()  # the rest of it is no answer to a later request
            raise

    try:
        yield read
    except (TimeoutError, urllib3.exceptions.TimeoutError):
        if time.monotonic() < deadline - _SLACK_SECONDS:
            raise
        # Without its cause, which callers that show the innermost one would show.
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
    """The words of an error of urllib3 without the connection that they begin with."""
    return _OBJECT.sub("", words).strip()


class _Raw(io.RawIOBase):
    """What a socket receives until the deadline."""

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
    """The part of a socket that a response of `http.client` asks for."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Raw(self._sock))


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(_Opened(sock), *arguments, **named)  # type: ignore[arg-type]  # it asks for this part alone


class PlainConnection(HTTPConnection):
    """A connection to `http://`. `connect` makes the socket, in place of urllib3's own way to the host."""

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
