"""A task's end of the channel."""

import contextlib
import random
import secrets
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.messages import (
    MAX_BYTES,
    BadMessage,
    Join,
    Message,
    Orders,
    Received,
    Refused,
    Report,
    decode,
    encode,
)
from spark_runner.push.errors import PushError

_REPORT_S = 1.0  # between reports; a driver without one for a while takes the counts for stale
_ANSWER_S = 5.0  # to connect, and for an answer to a report
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 1.0  # before a further connection
_BUSY_S = 0.05  # before a further report while more requests are in flight than the orders allow
_FIRST_S = 60.0  # for the first contact
_CHUNK = 64 * 1024
_MAX_ORDERS_BYTES = 4 * 1024 * 1024  # thousands of lanes may be paused


class FencedOut(PushError):
    """The driver takes nothing more from this task: a later attempt has its place, or its lease is over."""


class NoChannel(PushError):
    """The task cannot reach its driver."""


class BadReport(PushError):
    """A task counts more than fits into a report."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how a task finds its driver: it travels to the task as part of its function.

    `certificate` is that of the driver as PEM, the only one that is trusted; empty: no TLS, on loopback.
    """

    host: str
    port: int
    token: str = field(repr=False)
    lease: float
    certificate: str = ""

    def connected(self) -> socket.socket:
        """A connection; raises OSError."""
        plain = socket.create_connection((self.host, self.port), _ANSWER_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.certificate:
            return plain
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust.load_verify_locations(cadata=self.certificate)
        trust.check_hostname = False  # the certificate itself is known
        try:
            return trust.wrap_socket(plain)
        except OSError:
            plain.close()
            raise


class ControlClient:
    """Reports what a task counts, and receives its orders, in a thread of its own.

    `report` returns the counts, of which `in_flight` are the requests. `follow` gets orders, and `extend` the
    time until which they hold, by the monotonic clock: the lease since the last report that has an answer was
    sent. `failed` gets the error after which there will be none: FencedOut, NoChannel, BadReport, or one of
    these functions.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        task: TaskId,
        *,
        report: Callable[[], dict[str, Any]],
        follow: Callable[[Orders], None],
        extend: Callable[[float], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._endpoint, self._task = endpoint, task
        self._report, self._follow, self._extend, self._failed = report, follow, extend, failed
        self._orders: Orders | None = None  # the last ones of this connection
        self._confirmed = 0  # the version of those that the requests in flight were within
        self._began = time.monotonic()
        self._contact: float | None = None  # when what was answered last was sent
        self._sent = dict[int, float]()  # reports without an answer; the number of the first message is 0
        self._number = self._last = 0
        self._nonce = secrets.token_hex(16)  # of this process
        self._ending, self._is_done = threading.Event(), False
        self._wake, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="push-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send the last report, if the driver can be reached, and end."""
        if self._ending.is_set():
            return
        self._ending.set()
        self._waker.send(b"x")
        if self._thread is not threading.current_thread():
            self._thread.join()
            self._wake.close()
            self._waker.close()

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 - a thread must not end silently
            self._end(error)

    def _serve(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._is_done:
            known = self._contact
            with (
                contextlib.suppress(OSError, BadMessage),
                contextlib.closing(self._endpoint.connected()) as sock,
            ):
                self._talk(sock)
            if self._contact is None and time.monotonic() - self._began > _FIRST_S:
                place = f"{self._endpoint.host}:{self._endpoint.port}"
                raise NoChannel(f"the driver does not answer at {place}; open this port to its executors")
            if self._ending.is_set():
                return  # the driver cannot be reached: the lease ends the place of this task
            pause = _FIRST_PAUSE_S if self._contact != known else min(2 * pause, _MAX_PAUSE_S)
            self._ending.wait(pause * random.uniform(0.5, 1))  # noqa: S311 - so that tasks spread

    def _talk(self, sock: socket.socket) -> None:
        """Exchange messages until the connection ends, or the task has; raises OSError, BadMessage."""
        self._orders, self._confirmed = None, 0
        self._sent.clear()
        received, next_report = bytearray(), time.monotonic()
        self._sent[0] = next_report
        sock.sendall(encode(Join(self._endpoint.token, *self._task, self._nonce)))
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while not self._is_done:
                now = time.monotonic()
                is_last = self._ending.is_set() and not self._last
                if now >= next_report or is_last:
                    is_within = self._send(sock, now, is_last=is_last)
                    next_report = now + (_REPORT_S if is_within else _BUSY_S)
                if self._sent and now - min(self._sent.values()) > _ANSWER_S:
                    return
                if not self._is_readable(sock, selector, next_report - now):
                    continue
                data = sock.recv(_CHUNK)
                *lines, rest = (received + data).split(b"\n")
                received = rest
                if not data or len(received) > _MAX_ORDERS_BYTES:
                    return
                for line in lines:
                    if self._process(decode(bytes(line))):
                        next_report = now  # confirm it

    def _send(self, sock: socket.socket, now: float, *, is_last: bool) -> bool:
        """Send a report; returns whether the requests in flight are within the orders."""
        counts, is_within = self._report(), True
        if self._orders is not None:
            is_within = counts.get("in_flight", 0) <= self._orders.concurrency
            self._confirmed = self._orders.version if is_within else self._confirmed
        self._number += 1
        line = encode(Report(self._number, self._confirmed, counts, is_last))
        if len(line) > MAX_BYTES:
            raise BadReport(f"the counts of a task have {len(line)} bytes; at most {MAX_BYTES} are sent")
        self._sent[self._number] = now
        if is_last:
            self._last = self._number
        sock.sendall(line)
        return is_within

    def _is_readable(self, sock: socket.socket, selector: selectors.BaseSelector, seconds: float) -> bool:
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            return True
        found = [key.fileobj for key, _ in selector.select(max(0.0, seconds))]
        if self._wake in found:
            self._wake.recv(1)
        return sock in found

    def _process(self, message: Message) -> bool:
        """Process what the driver sent; returns whether it is to be confirmed."""
        match message:
            case Orders():
                self._orders = message
                self._answered(0)
                self._follow(message)
                return True
            case Received(number):
                self._answered(number)
                self._is_done = number == self._last
            case Refused(reason):
                self._end(FencedOut(reason))
            case _:
                raise BadMessage("it is none of a driver")
        return False

    def _answered(self, number: int) -> None:
        at = self._sent.pop(number, None)
        if at is not None:
            self._contact = at if self._contact is None else max(self._contact, at)
            if self._orders is not None:
                self._extend(self._contact + self._endpoint.lease)

    def _end(self, error: BaseException) -> None:
        self._is_done = True
        self._extend(0.0)
        self._failed(error)
