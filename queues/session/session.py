"""One session with ZooKeeper.

This package hides kazoo's surprises: calls that are never retried or retried endlessly, an endless default
backoff, LOST that is reported only after a reconnect, and watches that vanish with the connection.
"""

import atexit
import contextlib
import os
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Self

from kazoo.client import WriterNotClosedException
from kazoo.exceptions import UnimplementedError
from kazoo.protocol.states import KazooState

from queues.model.errors import Refused, SessionLost
from queues.model.operations import Operation
from queues.session.client import acls, build_client
from queues.session.connection import Follow
from queues.session.contact import Contact, SessionState, Wake
from queues.session.reads import Reads
from queues.session.requests import NO_RIGHT, Posted, Requests
from queues.session.rights import Identity, NodeAcls, WhoAmI, best_of, configured
from queues.session.settings import SessionSettings
from queues.session.wire import Multi, NodeData, Stat, acl_bytes


class Session:
    """A connection that answers or fails within a deadline, and reports when its locks are no longer safe."""

    def __init__(
        self, settings: SessionSettings, *, origin: Callable[[], str] = lambda: "ZOOKEEPER_HOSTS"
    ) -> None:
        """A session that is not started; `origin` returns what names the hosts, for errors."""
        self.settings = settings
        self._contact = Contact(settings.session_timeout)
        self._client = build_client(settings, self._contact)
        self._client.add_listener(self._on_state)
        self._requests = Requests(self._client, self._contact, settings.hosts, origin)
        self._reads = Reads(self._client, self._requests, settings.call_timeout)
        self._acls = acls(settings)
        self._acl_bytes = acl_bytes(self._acls)
        self._forked = False
        self._identity: tuple[int, Identity] | None = None  # with the number of its connection
        _OPEN.add(self)

    def start(self) -> Self:
        """Connect, within `connect_timeout`.

        Raises AccessDenied if the servers refuse this client, Unreachable if no server answers.
        """
        try:
            self._connect()
        except BaseException:
            self.close()
            raise
        return self

    def _connect(self) -> None:
        seconds, chroot = self.settings.connect_timeout, self._client.chroot
        deadline = time.monotonic() + seconds
        self._client.start_async()
        if not self._contact.wait(seconds, or_refused=True):
            raise self._requests.unreachable(seconds) from self._contact.trouble
        # kazoo only warns of a missing chroot, and then all calls fail. A driver may have no right to look.
        if chroot and not self.settings.rights:
            self._requests.make_path("", chroot, self._acls, max(0.1, deadline - time.monotonic()))

    def close(self) -> None:
        """End the session and remove its ephemeral nodes; later calls raise SessionLost."""
        self._contact.end(lambda: SessionLost("the session was closed"))
        if self._forked:  # the session is the parent's, and a close from here would end it
            return
        self._client.remove_listener(self._on_state)
        with contextlib.suppress(WriterNotClosedException):  # the session ends by its timeout
            self._client.stop()
            self._client.close()

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
    def folder(self) -> str:
        """The folder of `hosts` below which all paths are; empty for the root."""
        return str(self._client.chroot)

    @property
    def state(self) -> SessionState:
        """The connection as known now; LOST, by the local clock, before the server can end the session."""
        return self._contact.state

    @property
    def generation(self) -> int:
        """Grows with each lost session: what was held in an earlier one is not held."""
        return self._contact.generation

    @property
    def connections(self) -> int:
        """Grows with each connection, also within one session."""
        return self._contact.connections

    @property
    def negotiated_timeout(self) -> float:
        """Seconds without contact after which the server ends the session; may be less than requested."""
        return self._contact.negotiated_timeout

    def seconds_without_contact(self) -> float:
        """Seconds for which the connection has been down; 0 while it is up."""
        return self._contact.seconds_away()

    def on_change(self, wake: Wake) -> None:
        """Call `wake` at each change of the connection."""
        self._contact.on_change(wake)

    def _on_state(self, state: str) -> None:
        # Runs on kazoo's connection thread. CONNECTED comes before the authentication: see Connection.
        if state != KazooState.CONNECTED:
            self._contact.broken(lost=state == KazooState.LOST)

    def wait_connected(self, seconds: float) -> bool:
        """Wait until the connection is up; False if it is not after `seconds`.

        Raises SessionLost after `close` or a fork, AccessDenied if the server rejects the credentials.
        """
        return self._contact.wait(seconds)

    # ------------------------------------------------------------------ identity
    def whoami(self) -> Identity:
        """The identity of this session on the server, requested at the first use on each connection.

        For a server below ZooKeeper 3.7 it comes from the settings, marked as such. Raises what reads raise.
        """
        connections = self.connections
        if self._identity is None or self._identity[0] != connections:
            self._identity = connections, self._ask_identity()
        return self._identity[1]

    def _ask_identity(self) -> Identity:
        try:
            return best_of(self._reads.ask("", lambda: self._requests.call(WhoAmI())))
        except Refused as error:
            if isinstance(error.__cause__, UnimplementedError):
                return configured(self.settings)
            raise

    # ------------------------------------------------------------------ reads
    def get(
        self, path: str, wake: Wake | None = None, *, await_creation: bool = True
    ) -> tuple[bytes, Stat] | None:
        """Data and stat of a node, None if it does not exist; `wake` is called once when that changes.

        Without `await_creation` no watch is left for a node that does not exist and may never be created.
        """
        return self._reads.get(path, wake, await_creation=await_creation)

    def exists(self, path: str, wake: Wake | None = None) -> Stat | None:
        """Stat of a node, None if it does not exist; `wake` is called once when that changes."""
        return self._reads.exists(path, wake)

    def children(self, path: str) -> list[str] | None:
        """Names of the children, unordered; None if the node does not exist."""
        listed = self.listing(path)
        return None if listed is None else listed[0]

    def forget(self, path: str, wake: Wake) -> None:
        """Stop calling `wake` for changes of this node.

        For a node that will not change: the server keeps its watch, some bytes, until the node is removed.
        """
        self._reads.forget(path, wake)

    def listing(self, path: str, wake: Wake | None = None) -> tuple[list[str], Stat] | None:
        """The children and the matching stat of the node; `wake` is called once when the children change."""
        return self._reads.listing(path, wake)

    def follow(self, path: str, follow: Follow) -> None:
        """Call `follow` for each child that is created or deleted, until the connection breaks.

        Raises Refused if the server does not support it.
        """
        self._reads.follow(path, follow)

    def owners(self, path: str) -> tuple[tuple[str, str], ...]:
        """Scheme and id of each identity with all rights on a node of this session: the session's identities.

        Read once, because the server gives each node that this session creates the same rights. Raises
        Refused if the node does not exist.
        """
        return self._reads.owners(path)

    def get_many(self, paths: Sequence[str]) -> list[NodeData | None]:
        """Data and stat of many nodes in few requests, None for each node that does not exist."""
        return self._reads.get_many(paths)

    @property
    def access(self) -> NodeAcls:
        """Reads and changes the ACLs of nodes."""
        return NodeAcls(self._client, self._requests, self.settings.call_timeout)

    # ------------------------------------------------------------------ writes
    def ensure_path(self, path: str) -> None:
        """Create a folder and all missing folders above it."""
        self._requests.make_path(self._client.chroot, path, self._acls, self.settings.call_timeout)

    def send(self, operations: Sequence[Operation], timeout: float) -> list[Any]:
        """Send one multi once and return a result per operation, exceptions among them.

        Raises ReplyLost if the outcome is unknown, AccessDenied if the session has no right to an operation.
        Only `queues.store.commit` calls this: it examines every result.
        """
        results = self.post(operations).results(timeout)
        for operation, result in zip(operations, results, strict=False):
            if isinstance(result, NO_RIGHT):
                raise self._requests.refused(operation.path, result)
        return results

    def post(self, operations: Sequence[Operation]) -> Posted:
        """Send one multi without waiting for its reply; several may be in flight."""
        return Posted(self._requests.call(Multi(operations, self._client.chroot, self._acl_bytes)))

    # ------------------------------------------------------------------ fork
    def _forget_after_fork(self) -> None:
        # The client's threads exist only in the parent: here every call would hang.
        self._forked = True
        self._contact.end_after_fork(
            lambda: SessionLost("the session was opened before a fork; open one in the child process")
        )
        self._client._connection.drop_after_fork()  # noqa: SLF001 - our class in kazoo's attribute
        atexit.unregister(self._client.handler.stop)  # kazoo's handler would wait for the parent's threads


_OPEN: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for session in list(_OPEN):
        session._forget_after_fork()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_after_fork_in_child)
