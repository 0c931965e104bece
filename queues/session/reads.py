"""The reads of a session: nodes, their children and watches on both, retried until their deadline."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.security import Permissions

from queues.session.connection import AddWatch, Follow
from queues.session.contact import Wake
from queues.session.joint_reads import JointReads
from queues.session.requests import Requests
from queues.session.wire import MAX_PATHS, MultiRead, NodeData, Stat, checked_path


@dataclass(frozen=True, slots=True)
class _Watcher:
    # Equal for equal wakes: kazoo stores watchers in a set per path, which would grow with every read.
    wake: Wake

    def __call__(self, _event: object) -> None:
        self.wake()


def _watcher(wake: Wake | None) -> _Watcher | None:
    return None if wake is None else _Watcher(wake)


class Reads:
    """Reads nodes through one client; `seconds` is the deadline of each call.

    Raises AccessDenied, Refused, Unreachable, SessionLost.
    """

    def __init__(self, client: Any, requests: Requests, seconds: float) -> None:
        self._client = client
        self._requests = requests
        self._seconds = seconds
        self._owners: tuple[tuple[str, str], ...] = ()
        self._joint = JointReads(self._read_together)

    def ask(self, path: str, call: Callable[[], Any]) -> Any:
        """The answer to `call`, which is sent again if its reply is lost; `path` is for error messages."""
        return self._requests.read(path, call, self._seconds)

    def get(self, path: str, wake: Wake | None, *, await_creation: bool) -> tuple[bytes, Stat] | None:
        """Data and stat of a node: see `Session.get`."""
        checked_path(path)
        try:
            data, stat = self.ask(path, lambda: self._client.get_async(path, watch=_watcher(wake)))
        except NoNodeError:
            if wake is not None and await_creation:  # kazoo sets a data watch only on an existing node
                self.exists(path, wake)
            return None
        return data or b"", Stat.of(stat)

    def exists(self, path: str, wake: Wake | None) -> Stat | None:
        """Stat of a node: see `Session.exists`."""
        checked_path(path)
        stat = self.ask(path, lambda: self._client.exists_async(path, watch=_watcher(wake)))
        return None if stat is None else Stat.of(stat)

    def forget(self, path: str, wake: Wake) -> None:
        """Remove a watch: see `Session.forget`."""
        watchers = self._client._data_watchers.get(path, set())  # noqa: SLF001 - kazoo has no public way
        watchers.discard(_Watcher(wake))

    def listing(self, path: str, wake: Wake | None) -> tuple[list[str], Stat] | None:
        """Children and stat of a node: see `Session.listing`."""
        listed = partial(
            self._client.get_children_async, checked_path(path), watch=_watcher(wake), include_data=True
        )
        try:
            names, stat = self.ask(path, listed)
        except NoNodeError:
            return None
        return names, Stat.of(stat)

    def follow(self, path: str, follow: Follow) -> None:
        """Follow the children of a node: see `Session.follow`."""
        path = str(self._client.chroot) + path
        self._client._connection.followers.add(path, follow)  # noqa: SLF001 - our class in kazoo's attribute
        self.ask(path, lambda: self._requests.call(AddWatch(path)))

    def owners(self, path: str) -> tuple[tuple[str, str], ...]:
        """Identities with all rights on a node: see `Session.owners`."""
        if not self._owners:
            try:
                found, _ = self.ask(path, lambda: self._client.get_acls_async(checked_path(path)))
            except NoNodeError as error:
                raise self._requests.refused(path, error) from error
            self._owners = tuple((acl.id.scheme, acl.id.id) for acl in found if acl.perms == Permissions.ALL)
        return self._owners

    def get_many(self, paths: Sequence[str]) -> list[NodeData | None]:
        """Data and stat of many nodes: see `Session.get_many`."""
        found: list[NodeData | None] = []
        for start in range(0, len(paths), MAX_PATHS):
            batch = paths[start : start + MAX_PATHS]
            begun, results = time.monotonic(), None
            if self._requests.ready:  # in an outage, and in a forked child, none waits for another
                results = self._joint.read(batch, begun + self._seconds)
            if results is None:
                send = partial(self._multi_read, batch)
                results = self._requests.read("", send, self._seconds, begun=begun)
            for path, result in zip(batch, results, strict=True):
                if isinstance(result, KazooException):
                    raise self._requests.refused(path, result)
                found.append(result)
        return found

    def _read_together(self, paths: Sequence[str], deadline: float) -> Any:
        return self._multi_read(paths).get(timeout=max(0.0, deadline - time.monotonic()))

    def _multi_read(self, paths: Sequence[str]) -> Any:
        root = self._client.chroot
        return self._requests.call(MultiRead([root + path for path in paths]))
