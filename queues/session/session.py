"""One session with ZooKeeper.

kazoo's own surprises are kept in here: calls that are not retried or retried without end, an endless default
back-off, LOST that is reported only after a reconnect, watches that vanish with the connection.
"""

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Self

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import OPEN_ACL_UNSAFE

from queues.errors import Refused, SessionLost, Unreachable
from queues.operations import Operation
from queues.session.multi import Multi, acl_bytes
from queues.session.multi_read import MAX_PATHS, Found, MultiRead
from queues.session.settings import SessionSettings
from queues.session.stat import Stat

log = logging.getLogger(__name__)

# kazoo's default reaches an hour: a worker would stay away long after ZooKeeper is back.
_MAX_RECONNECT_DELAY_SECONDS = 5.0
# kazoo notices a silent server after two thirds of the session timeout, so at SUSPENDED at most a third is
# left before the server may have given our locks away; half of that third is kept as a margin.
_SAFE_SHARE_AFTER_SUSPENDED = 1 / 6

# The reply did not arrive: the request may or may not have been carried out.
_REPLY_LOST = (
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    ConnectionClosedError,
    KazooTimeoutError,
)


class ReplyLost(Exception):
    """A request was sent and its reply did not arrive."""


class SessionState(StrEnum):
    """What we know of the connection."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


Wake = Callable[[], None]
"""Called on kazoo's own thread: it may set an event and nothing more."""


class Session:
    """A connection that answers or fails within a deadline, and says when holding has become unsafe."""

    def __init__(self, settings: SessionSettings) -> None:
        self.settings = settings
        self.generation = 0  # grows with each lost session: what was held in an earlier one is not held
        self.negotiated_timeout = settings.session_timeout  # seconds; what the server granted
        self._closed = ""  # why no more calls are taken
        self._suspended_at: float | None = 0.0  # None while connected; by the monotonic clock
        self._connected = threading.Event()
        self._listeners: list[Wake] = []
        self._client: Any = KazooClient(
            hosts=settings.hosts,
            timeout=settings.session_timeout,
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=_MAX_RECONNECT_DELAY_SECONDS),
            command_retry=KazooRetry(max_tries=0),
            logger=logging.getLogger("kazoo"),
        )
        self._acl = acl_bytes(OPEN_ACL_UNSAFE)
        self._client.add_listener(self._on_state)
        self._hear_negotiated_timeout()
        _OPEN.add(self)

    def _hear_negotiated_timeout(self) -> None:
        # kazoo uses what the server grants and tells nobody; our own loss timer must go by it as well.
        connection = self._client._connection  # noqa: SLF001 - no public way
        invoke = connection._invoke  # noqa: SLF001 - likewise

        def listen(timeout: float, request: object, xid: int | None = None) -> Any:
            reply = invoke(timeout, request, xid)
            if isinstance(request, Connect) and reply[0].time_out > 0:
                self.negotiated_timeout = reply[0].time_out / 1000
            return reply

        connection._invoke = listen  # noqa: SLF001 - likewise

    def start(self) -> Self:
        """Connect; raises Unreachable after `connect_timeout`."""
        try:
            self._client.start(timeout=self.settings.connect_timeout)
        except KazooTimeoutError as error:
            self._client.stop()
            self._client.close()
            raise Unreachable(self.settings.hosts, self.settings.connect_timeout) from error
        return self

    def close(self) -> None:
        """End the session, and with it every ephemeral of ours; calls from then on raise SessionLost."""
        self._closed = "the session was closed"
        self._client.remove_listener(self._on_state)
        self._client.stop()
        self._client.close()
        self._connected.clear()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ state
    @property
    def id(self) -> int:
        """The session's id, 0 before the first connection."""
        client_id = self._client.client_id
        return int(client_id[0]) if client_id else 0

    @property
    def state(self) -> SessionState:
        """The connection as known now; SUSPENDED turns into LOST by our own clock."""
        suspended_at = self._suspended_at
        if suspended_at is None:
            return SessionState.CONNECTED
        safe = self.negotiated_timeout * _SAFE_SHARE_AFTER_SUSPENDED
        return SessionState.SUSPENDED if time.monotonic() - suspended_at < safe else SessionState.LOST

    def seconds_without_contact(self) -> float:
        """How long the connection has been away; 0 while it is there."""
        suspended_at = self._suspended_at
        return 0.0 if suspended_at is None else time.monotonic() - suspended_at

    def on_change(self, wake: Wake) -> None:
        """Call `wake` at each change of the connection."""
        self._listeners.append(wake)

    def _on_state(self, state: str) -> None:
        # Runs on kazoo's connection thread: a call to ZooKeeper from here would never return.
        if state == KazooState.CONNECTED:
            self._suspended_at = None
            self._connected.set()
        else:
            self._connected.clear()
            if self._suspended_at is None:
                self._suspended_at = time.monotonic()
            if state == KazooState.LOST:
                self.generation += 1
        log.info("session %#x: %s", self.id, state)
        for wake in self._listeners:
            wake()

    def wait_connected(self, seconds: float) -> bool:
        """Wait until the connection is there; False when it is not after `seconds`. Raises SessionLost."""
        if self._closed:
            raise SessionLost(self._closed)
        return self._connected.wait(max(0.0, seconds))

    # ------------------------------------------------------------------ reads
    def get(
        self, path: str, wake: Wake | None = None, *, await_creation: bool = True
    ) -> tuple[bytes, Stat] | None:
        """Data and stat of a node, None where there is none; `wake` is called once when that changes.

        Without `await_creation` no watch is left where there is no node: for one that may never come.
        """
        try:
            data, stat = self._read(lambda: self._client.get_async(path, watch=_watcher(wake)))
        except NoNodeError:
            if wake is not None and await_creation:  # kazoo keeps a data watch only for a node that is there
                self.exists(path, wake)
            return None
        return data or b"", Stat.of(stat)

    def exists(self, path: str, wake: Wake | None = None) -> Stat | None:
        """Stat of a node, None where there is none; `wake` is called once when that changes."""
        stat = self._read(lambda: self._client.exists_async(path, watch=_watcher(wake)))
        return None if stat is None else Stat.of(stat)

    def children(self, path: str) -> list[str] | None:
        """Names of the children, in no order; None where there is no such node."""
        listed = self.listing(path)
        return None if listed is None else listed[0]

    def listing(self, path: str, wake: Wake | None = None) -> tuple[list[str], Stat] | None:
        """The children and the stat that belongs to them; `wake` is called once when they change."""
        try:
            names, stat = self._read(
                lambda: self._client.get_children_async(path, watch=_watcher(wake), include_data=True)
            )
        except NoNodeError:
            return None
        return names, Stat.of(stat)

    def get_many(self, paths: Sequence[str]) -> list[Found]:
        """Data and stat of many nodes in few requests, None where there is no node."""
        found: list[Found] = []
        for start in range(0, len(paths), MAX_PATHS):
            part = paths[start : start + MAX_PATHS]
            for path, result in zip(part, self._read(partial(self._multi_read, part)), strict=True):
                if isinstance(result, KazooException):
                    raise Refused(path, type(result).__name__.removesuffix("Error"))
                found.append(result)
        return found

    def _multi_read(self, paths: Sequence[str]) -> Any:
        root = self._client.chroot
        return self._call(MultiRead([root + path for path in paths]))

    def _read(self, call: Callable[[], Any]) -> Any:
        # A read changes nothing, so a lost reply is simply asked for again.
        deadline = time.monotonic() + self.settings.call_timeout
        while True:
            left = deadline - time.monotonic()
            try:
                if self.wait_connected(left):
                    return call().get(timeout=max(0.1, deadline - time.monotonic()))
            except _REPLY_LOST:
                time.sleep(0.05)  # the connection is about to be reported away; do not spin until then
            except (NoNodeError, NodeExistsError):
                raise  # answers
            except KazooException as error:
                raise Refused("", type(error).__name__.removesuffix("Error")) from error
            if time.monotonic() >= deadline:
                raise Unreachable(self.settings.hosts, self.settings.call_timeout)

    # ------------------------------------------------------------------ writes
    def ensure_path(self, path: str) -> None:
        """Make a folder and what is above it."""
        made = ""
        for part in path.strip("/").split("/"):
            made = f"{made}/{part}"
            if self.exists(made) is not None:
                continue
            with contextlib.suppress(NodeExistsError):  # somebody else, or our own lost reply: it is there
                self._read(partial(self._client.create_async, made, b""))

    def send(self, operations: Sequence[Operation], timeout: float) -> list[Any]:
        """Send one multi once and return a result per operation, exceptions among them.

        Raises ReplyLost when the outcome is unknown. Only `queues.transaction` calls this: it examines
        every result.
        """
        return self.post(operations).results(timeout)

    def post(self, operations: Sequence[Operation]) -> "Posted":
        """Send one multi without waiting for its reply; several may be under way."""
        return Posted(self._call(Multi(operations, self._client.chroot, self._acl)))

    def _call(self, request: Multi | MultiRead) -> Any:
        reply = self._client.handler.async_result()
        self._client._call(request, reply)  # noqa: SLF001 - the door that kazoo's own requests take
        return reply

    # ------------------------------------------------------------------ fork
    def _forget_after_fork(self) -> None:
        # The threads that serve a client exist in the parent only: here every call would hang for ever.
        self._closed = "the session was opened before a fork; open one in the child process"
        self._connected = threading.Event()


class Posted:
    """A multi under way."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    def results(self, timeout: float) -> list[Any]:
        """A result per operation, exceptions among them; raises ReplyLost when the outcome is unknown."""
        try:
            results = self._reply.get(timeout=timeout)
        except _REPLY_LOST as error:
            raise ReplyLost(type(error).__name__) from error
        return list(results)


_OPEN: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for session in list(_OPEN):
        session._forget_after_fork()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_after_fork_in_child)


def refusal(result: object) -> str | None:
    """Why ZooKeeper refused this operation; None for a success or for a bystander of another's refusal."""
    if isinstance(result, RolledBackError | RuntimeInconsistency):
        return None
    return type(result).__name__.removesuffix("Error") if isinstance(result, KazooException) else None


@dataclass(frozen=True, slots=True)
class _Watcher:
    # Equal for equal wakes: kazoo keeps watchers in a set per path, which would grow with every read.
    wake: Wake

    def __call__(self, _event: object) -> None:
        self.wake()


def _watcher(wake: Wake | None) -> _Watcher | None:
    return None if wake is None else _Watcher(wake)
