"""Requests that end with an answer, or with an error by their deadline."""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import Create, Exists
from kazoo.security import ACL

from queues.model.errors import AccessDenied, QueueError, Refused, Unreachable
from queues.session.contact import Contact
from queues.session.wire import path_bytes

REPLY_LOST = (
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    ConnectionClosedError,
    AuthFailedError,
    KazooTimeoutError,
)
"""The reply did not arrive: the request may or may not have been executed."""

NO_RIGHT = (NoAuthError, InvalidACLError)
"""The server has identified the client and denies the request."""

_OF_ANOTHER_SESSION = (SessionExpiredError, SessionMovedError)


class ReplyLost(Exception):
    """A request was sent and its reply did not arrive."""


class Posted:
    """A multi in flight."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    def results(self, timeout: float) -> list[Any]:
        """A result per operation, exceptions among them; raises ReplyLost when the outcome is unknown."""
        try:
            results = self._reply.get(timeout=timeout)
        except REPLY_LOST as error:
            raise ReplyLost(type(error).__name__) from error
        for result in results:
            if isinstance(result, _OF_ANOTHER_SESSION):
                # The multi arrived after the end of its connection: the request itself is valid.
                raise ReplyLost(type(result).__name__)
        return list(results)


def refusal(result: object) -> str | None:
    """Why ZooKeeper refused this operation; None if it succeeded, or if only another one was refused."""
    if isinstance(result, RolledBackError | RuntimeInconsistency):
        return None
    return type(result).__name__.removesuffix("Error") if isinstance(result, KazooException) else None


# A request fails before the session reports the broken connection: the pause prevents a busy loop until then.
_PAUSE_SECONDS = 0.05


class Requests:
    """Sends requests through one client, and converts its errors to those of this package."""

    def __init__(self, client: Any, contact: Contact, hosts: str, origin: Callable[[], str]) -> None:
        self._client = client
        self._contact = contact
        self._hosts, self._origin = hosts, origin

    @property
    def ready(self) -> bool:
        """Whether requests can be sent."""
        return self._contact.ready

    def call(self, request: Any) -> Any:
        """Send a request once; returns its reply, to wait for."""
        reply = self._client.handler.async_result()
        if self.ready:
            self._client._call(request, reply)  # noqa: SLF001 - as kazoo sends its own requests
        else:
            # kazoo would store the request and send it after the outage, long after its caller gave up.
            self._contact.check()
            reply.set_exception(ConnectionLoss())
        return reply

    def read(self, path: str, call: Callable[[], Any], seconds: float, *, begun: float | None = None) -> Any:
        """The answer to `call`, an idempotent request: it is sent again if its reply is lost.

        Raises kazoo's NoNodeError and NodeExistsError, which are answers; AccessDenied, Refused, Unreachable,
        SessionLost. `path` is for error messages; `begun`: when the seconds began, now if None.
        """
        deadline = (time.monotonic() if begun is None else begun) + seconds
        while True:
            try:
                if self._contact.wait(deadline - time.monotonic()):
                    return call().get(timeout=max(0.1, deadline - time.monotonic()))
            except REPLY_LOST:
                time.sleep(_PAUSE_SECONDS)
            except (NoNodeError, NodeExistsError):
                raise
            except KazooException as error:
                raise self.refused(path, error) from error
            if time.monotonic() >= deadline:
                raise self.unreachable(seconds) from self._contact.trouble

    def make_path(self, above: str, path: str, acls: list[ACL], seconds: float) -> None:
        """Create the missing nodes of a path below an existing node; each within `seconds`."""
        made = above
        path_bytes(path)
        for name in path.strip("/").split("/"):
            made = f"{made}/{name}"
            if self.read(made, partial(self.call, Exists(made, None)), seconds) is None:
                # The node exists: another client created it, or the reply to an earlier send was lost.
                with contextlib.suppress(NodeExistsError):
                    self.read(made, partial(self.call, Create(made, b"", acls, 0)), seconds)

    def unreachable(self, seconds: float) -> QueueError:
        """The error if no connection was established."""
        if self._contact.refused:
            return AccessDenied(self._hosts, self._contact.refused)
        return Unreachable(self._hosts, seconds, self._origin())

    def refused(self, path: str, error: KazooException) -> QueueError:
        """The error for a request that the server refused."""
        reason = type(error).__name__.removesuffix("Error")
        if isinstance(error, InvalidACLError):
            return AccessDenied(
                self._hosts,
                f"the server accepted neither a login nor a certificate of this client, so the client cannot "
                f"own {path or '/'} (InvalidACL); configure the server to ask for one, or use the ACL `open`",
            )
        if isinstance(error, NO_RIGHT):
            return AccessDenied(
                self._hosts,
                f"this client has no right to do this at {path or '/'} ({reason}); check its user and "
                "password, and the rights on the node: `getAcl` in zkCli shows them",
            )
        return Refused(path, reason)
