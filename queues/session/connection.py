"""kazoo's connection thread with its defects fixed, and persistent recursive watches.

kazoo 2.11 does not support these watches; servers do since ZooKeeper 3.6 (ZOOKEEPER-1416). A standard watch
reports only that something has changed, and all children must be listed to find the change. The bytes are
laid out as in `org.apache.zookeeper.proto.AddWatchRequest`.
"""

import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect, int_int_struct, int_struct, read_string, write_string
from kazoo.protocol.states import KeeperState
from kazoo.retry import ForceRetryError

from queues.model.errors import AccessDenied
from queues.session.contact import Contact, boottime

_CREATED, _DELETED = 1, 2
_PERSISTENT_RECURSIVE = 1

Follow = Callable[[str, bool, int], None]
"""Called with the name of a child, whether it exists now, and the zxid of the change; 0 before ZooKeeper 3.9.

It runs on the connection's thread, so it must record the change and do nothing more.
"""


class AddWatch:
    """Requests an event for each node created or deleted below a node, for the life of the connection."""

    type = 106

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        """The request."""
        return bytes(write_string(self._path) + int_struct.pack(_PERSISTENT_RECURSIVE))

    def deserialize(self, _reply: bytes, _offset: int) -> bool:
        """The reply is empty."""
        return True


class Followers:
    """The followers of each node, on one connection."""

    def __init__(self) -> None:
        self._by_path: dict[str, list[Follow]] = {}  # by the server's paths, which include the chroot

    def add(self, path: str, follow: Follow) -> None:
        """Call this follower from now on."""
        self._by_path[path] = [*self._by_path.get(path, ()), follow]

    def clear(self) -> None:
        """Remove all followers: the server drops its watches with the connection."""
        self._by_path = {}

    def notify(self, event: Any, offset: int, zxid: int) -> None:
        """Pass on an event, given as its bytes."""
        if not self._by_path:
            return
        kind, _state = int_int_struct.unpack_from(event, offset)
        if kind in {_CREATED, _DELETED}:
            path, _end = read_string(event, offset + int_int_struct.size)
            folder, _slash, name = path.rpartition("/")
            for follow in self._by_path.get(folder, ()):
                follow(name, kind == _CREATED, max(zxid, 0))


# The longest wait for the reply to a close; without a reply the session ends by its timeout.
_GOODBYE_SECONDS = 2.0
# The longest wait of a caller for the connection's thread to accept a request.
_HAND_OVER_SECONDS = 5.0

_LOGIN_REFUSED = (
    "the login was refused; check user and password, and that the server has them (SASL: its JAAS file)"
)


class Connection(ConnectionHandler):  # type: ignore[misc] # kazoo has no types
    """Reports each contact to `contact`, and continues where kazoo's thread would end silently."""

    def __init__(self, client: Any, retry: Any, contact: Contact, sasl: dict[str, str] | None) -> None:
        super().__init__(client, retry, logger=client.logger, sasl_options=sasl)
        self.followers = Followers()
        self._event_zxid = 0  # of the event being read
        self._contact = contact
        self._hosts = ",".join(f"{host}:{port}" for host, port in client.hosts)
        self._asked: tuple[int, float] | None = None  # an unanswered request: its xid, when it was sent
        self._attempts = 0
        self._refusals: list[str] = []

    def start(self) -> None:
        """Start the thread."""
        super().start()
        self._write_sock.settimeout(_HAND_OVER_SECONDS)

    def stop(self, timeout: float | None = None) -> Any:
        """Wait for the thread to end; if the server stays silent, shut the socket down to end it."""
        if not self.connection_stopped.wait(_GOODBYE_SECONDS):
            connected = self._socket
            with contextlib.suppress(OSError, AttributeError):  # no socket, or one that is not connected
                connected.shutdown(socket.SHUT_RDWR)
        return super().stop(timeout)

    def drop_after_fork(self) -> None:
        """Close this process's copies of the sockets; the parent's stay open."""
        for copy in (self._socket, self._read_sock, self._write_sock):
            with contextlib.suppress(OSError, AttributeError):
                copy.close()

    # ------------------------------------------------------------------ contact
    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        sent_at = boottime()
        reply = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect) and reply[0].time_out > 0:
            # kazoo applies the timeout that the server grants, but does not expose it.
            self._contact.negotiated_timeout = reply[0].time_out / 1000
            self._contact.record_reply(sent_at)
        return reply

    def _submit(self, request: Any, timeout: float, xid: int | None = None) -> None:
        if xid and self._asked is None:
            self._asked = (xid, boottime())
        super()._submit(request, timeout, xid)

    def _read_header(self, timeout: float) -> Any:
        answer = super()._read_header(timeout)
        if self._asked is not None and answer[0].xid == self._asked[0]:
            self._contact.record_reply(self._asked[1])
            self._asked = None
        self._event_zxid = answer[0].zxid
        return answer

    def _read_watch_event(self, buffer: Any, offset: int) -> None:
        self.followers.notify(buffer, offset, self._event_zxid)
        super()._read_watch_event(buffer, offset)

    def _send_request(self, read_timeout: float, connect_timeout: float) -> None:
        # kazoo pings, and so notices silence, only while nothing else is sent.
        if self._asked is not None and boottime() - self._asked[1] > read_timeout:
            raise ConnectionDropped("requests are not answered")
        super()._send_request(read_timeout, connect_timeout)

    # ------------------------------------------------------------------ connect
    def _connect_loop(self, retry: Any) -> Any:
        self._attempts, self._refusals = 0, []
        try:
            return super()._connect_loop(retry)
        except ForceRetryError:
            if self._refusals and len(self._refusals) == self._attempts:
                self._contact.refuse(self._refusals[-1])
            raise
        except Exception as error:
            # kazoo's thread would end here: it would never connect again, and report no reason.
            self._contact.trouble = error
            if self.client._state != KeeperState.CONNECTING:  # noqa: SLF001 - no public way
                self.client._session_callback(KeeperState.CONNECTING)  # noqa: SLF001 - likewise
            raise ForceRetryError("Reconnecting") from error

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        self._asked = None
        self.followers.clear()
        self._attempts += 1
        try:
            timeouts = super()._connect(host, hostip, port)
        except AuthFailedError as error:
            if not isinstance(error.__cause__, ConnectionDropped):
                self._contact.end(lambda: AccessDenied(self._hosts, _LOGIN_REFUSED))
                raise
            # Old servers refuse a login this way, but a dying server does it too, and kazoo would give
            # up.
            self._contact.trouble = error
            self._refusals.append(_LOGIN_REFUSED)
            raise ConnectionDropped("dropped in SASL") from error
        except Exception as error:
            self._contact.trouble = error
            if isinstance(error.__context__, ssl.SSLError):
                self._refusals += _tls_refusal(f"{host}:{port}", error.__context__)
            raise
        self._contact.connected(self.client._session_id or 0, f"{host}:{port}")  # noqa: SLF001 - no public way
        return timeouts


def _tls_refusal(server: str, error: ssl.SSLError) -> list[str]:
    """The advice if certificates or TLS versions are the cause; empty for a connection that only broke."""
    reason = (error.reason or "").replace("_", " ").lower()
    if isinstance(error, ssl.SSLCertVerificationError):
        words = (
            f"the certificate of {server} is not accepted ({error.verify_message}); check the CA file, and "
            "that the certificate names the host as written in `hosts`"
        )
    elif "alert" in reason:
        words = f"{server} refused TLS ({reason}); check this client's certificate and key"
    elif "wrong version" in reason:
        words = f"{server} does not speak TLS ({reason}); check its port, and the versions that it allows"
    else:
        return []
    return [words]
