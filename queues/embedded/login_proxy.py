"""The way of zkCli into ZooKeeper: it speaks plainly to us on loopback, we log in and speak TLS for it.

zkCli takes a digest login only as a command, and TLS only from Java's key stores. So that no password has to
be typed, its connections go through this process, which alone reads password and keys.
"""

import contextlib
import selectors
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from queues.embedded.config import LOOPBACK
from queues.embedded.packets import auth_message, read_message
from queues.session import SessionSettings
from queues.session.peers import is_ours_to_answer, is_server_of

_CONNECT_SECONDS = 5.0  # then the next server is tried
_HANDSHAKE_SECONDS = 30.0
_DEFAULT_PORT = 2181


@contextmanager
def logged_in(settings: SessionSettings) -> Iterator[str]:
    """Give a connection string through which processes of this user reach the servers, logged in by digest.

    Raises OSError when the files of the settings cannot be read.
    """
    proxy = _Proxy(settings)
    with proxy.listener:
        threading.Thread(target=proxy.serve, daemon=True).start()
        yield f"{LOOPBACK}:{proxy.port}{settings.hosts[len(settings.hosts.partition('/')[0]) :]}"


class _Proxy:
    def __init__(self, settings: SessionSettings) -> None:
        self._servers = [_address(host) for host in settings.hosts.partition("/")[0].split(",")]
        self._greeting = b"" if settings.digest is None else auth_message(settings.digest)
        self._owner = None if settings.digest is None else settings.digest.server_uid
        self._context = None if settings.tls is None else settings.tls.context()
        self.listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self.listener.getsockname()[1]

    def serve(self) -> None:
        with contextlib.suppress(OSError):  # closed: zkCli has ended
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        # Whoever connects is logged in: that may be this user alone.
        with client, contextlib.suppress(OSError):
            if not is_ours_to_answer(client):
                return
            with self._server() as server:
                if self._owner is not None and not is_server_of(server, self._owner):
                    return
                for side in (client, server):
                    side.settimeout(_HANDSHAKE_SECONDS)
                server.sendall(read_message(client))
                answer = read_message(server)
                if self._greeting:  # before the client can ask for anything
                    server.sendall(self._greeting)
                    read_message(server)
                client.sendall(answer)
                for side in (client, server):
                    side.settimeout(None)
                _relay(client, server)

    def _server(self) -> socket.socket:
        for number, (host, port) in enumerate(self._servers, 1):
            try:
                server = socket.create_connection((host, port), _CONNECT_SECONDS)
                return (
                    server
                    if self._context is None
                    else self._context.wrap_socket(server, server_hostname=host)
                )
            except OSError:
                if number == len(self._servers):
                    raise
        raise ssl.SSLError("there is no server")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else (text.strip(), _DEFAULT_PORT)


def _relay(client: socket.socket, server: socket.socket) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, server)
        selector.register(server, selectors.EVENT_READ, client)
        while True:
            for key, _ in selector.select():
                data = _received(key.fileobj)  # type: ignore[arg-type] # a socket: those above
                if not data:
                    return
                key.data.sendall(data)


def _received(side: socket.socket) -> bytes:
    data = side.recv(65536)
    while data and isinstance(side, ssl.SSLSocket) and (waiting := side.pending()):
        data += side.recv(waiting)  # decrypted already: no selector tells of it
    return data
