"""Requests that end: with an answer, or with an error by their deadline."""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.exceptions import ConnectionLoss, InvalidACLError, KazooException, NodeExistsError, NoNodeError
from kazoo.protocol.serialization import Create, Exists
from kazoo.security import ACL

from queues.errors import AccessDenied, QueueError, Refused, Unreachable
from queues.session.contact import Contact
from queues.session.paths import path_bytes
from queues.session.posted import NO_RIGHT, REPLY_LOST

# The break is known here before the session reports the connection away: do not spin until then.
_PAUSE_SECONDS = 0.05


class Requests:
    """Sends through one client, and gives its errors our types."""

    def __init__(self, client: Any, contact: Contact, hosts: str) -> None:
        self._client = client
        self._contact = contact
        self._hosts = hosts

    def call(self, request: Any) -> Any:
        """Send a request once; its reply, to wait for."""
        reply = self._client.handler.async_result()
        if self._contact.ready:
            self._client._call(request, reply)  # noqa: SLF001 - the door that kazoo's own requests take
        else:
            # kazoo would keep it and send it after the outage, when its caller has long given up.
            self._contact.check()
            reply.set_exception(ConnectionLoss())
        return reply

    def read(self, path: str, call: Callable[[], Any], seconds: float) -> Any:
        """The answer to what may be asked again when its reply is lost, because it changes nothing twice.

        Raises kazoo's NoNodeError and NodeExistsError, which are answers; AccessDenied, Refused, Unreachable,
        SessionLost. `path` is for their messages.
        """
        deadline = time.monotonic() + seconds
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
        """Make the nodes of a path that are not there yet, below one that is; each within `seconds`."""
        made = above
        path_bytes(path)
        for part in path.strip("/").split("/"):
            made = f"{made}/{part}"
            if self.read(made, partial(self.call, Exists(made, None)), seconds) is None:
                # Somebody else was faster, or it was our own lost reply: it is there.
                with contextlib.suppress(NodeExistsError):
                    self.read(made, partial(self.call, Create(made, b"", acls, 0)), seconds)

    def unreachable(self, seconds: float) -> QueueError:
        """The error for a connection that did not come."""
        if self._contact.refused:
            return AccessDenied(self._hosts, self._contact.refused)
        return Unreachable(self._hosts, seconds)

    def refused(self, path: str, error: KazooException) -> QueueError:
        """The error for what the server did not want to do."""
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
                f"this client may not do what it asked at {path or '/'} ({reason}); check its user and "
                "password, and who made the node: `getAcl` in zkCli shows whom it lets in",
            )
        return Refused(path, reason)
