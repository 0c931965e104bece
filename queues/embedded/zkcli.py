"""The real zkCli with only its answer on stdout, and a proxy that does its login and its TLS.

zkCli takes a digest login only as a command, and TLS only from Java's key stores. Its connections pass
through this process, which alone reads password and keys, so that no user has to type a password.
"""

import contextlib
import os
import selectors
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from queues.embedded.config import LOOPBACK
from queues.embedded.java import QUICK_START, find_jars, find_java
from queues.embedded.packets import auth_message, read_message
from queues.embedded.zkcli_filter import SASL
from queues.private_directories import write_private
from queues.session import Login, SessionSettings
from queues.session.client import is_ours_to_answer, is_server_of

_CONNECT_SECONDS = 5.0  # then the next server is tried
_HANDSHAKE_SECONDS = 30.0
_DEFAULT_PORT = 2181


@contextmanager
def logged_in(settings: SessionSettings) -> Iterator[str]:
    """Yield a connection string through which processes of this user reach the servers, logged in by digest.

    Raises OSError if the files of the settings cannot be read.
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
        # Every accepted client is logged in, so only this user's processes are accepted.
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
                if self._greeting:  # before the client can send a request
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
        data += side.recv(waiting)  # decrypted already: no selector reports it
    return data


CLIENT_CLASS = "org.apache.zookeeper.ZooKeeperMain"

FILTER = Path(__file__).with_name("zkcli_filter.py")

_SECURE = "zookeeper.client.secure"

LOG_CONFIG = Path(__file__).with_name("zkcli_log4j2.properties")

CONNECT_TIMEOUT_MS = 10_000
"""The longest search for a member that answers, for one command; the interactive zkCli has no limit."""


JAAS = """\
Client {{
  org.apache.zookeeper.server.auth.DigestLoginModule required username="{user}" password="{password}";
}};
"""


def run_zkcli(settings: SessionSettings, args: Sequence[str]) -> int:
    """Run zkCli with the servers, logins and TLS of `settings`; returns its exit code.

    No password is in an argument or in the environment. If CLIENT_JVMFLAGS configures TLS, zkCli speaks it
    itself, and is not logged in by digest. Raises OSError, JavaMissing, JarsMissing.
    """
    with ExitStack() as stack:
        options, hosts = list[str](), settings.hosts
        if settings.sasl is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchestrator-")))
            write_private(folder / "jaas.conf", _jaas(settings.sasl))
            # In FIPS mode, the default, Java's client refuses DIGEST-MD5.
            options = [
                f"{SASL}{folder / 'jaas.conf'}",
                "-Dzookeeper.fips-mode=false",
            ]
        if (settings.digest or settings.tls) and _SECURE not in os.environ.get("CLIENT_JVMFLAGS", ""):
            hosts = stack.enter_context(logged_in(settings))
        with subprocess.Popen(zkcli_command(hosts, args, options)) as client:
            signal.signal(
                signal.SIGINT, signal.SIG_IGN
            )  # Ctrl-C reaches both processes, and is meant for zkCli
            signal.signal(signal.SIGTERM, lambda *_: client.terminate())
        return client.returncode if client.returncode >= 0 else 128 - client.returncode


def _jaas(login: Login) -> str:
    user, password = (text.replace("\\", r"\\").replace('"', r"\"") for text in (login.user, login.secret()))
    return JAAS.format(user=user, password=password)


def zkcli_command(hosts: str, args: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Return the argv that runs zkCli on `hosts` (with an optional chroot).

    With `args`, zkCli runs one command: its answer is on stdout, warnings and errors are on stderr, and the
    exit code is zkCli's. Without, zkCli prompts for commands. CLIENT_JVMFLAGS has the same effect as in
    zkCli.sh and can contain settings for TLS and SASL. Raises JavaMissing, JarsMissing.
    """
    client = [
        str(find_java().path),
        *QUICK_START,
        f"-Dlog4j2.configurationFile={LOG_CONFIG}",
        *options,
        *shlex.split(os.environ.get("CLIENT_JVMFLAGS", "")),
        *("-cp", str(find_jars() / "*"), CLIENT_CLASS, "-server", hosts),
    ]
    if not args:
        return client
    # Without `-waitforconnection`, the command fails if the first server tried is down.
    wait = ["-timeout", str(CONNECT_TIMEOUT_MS), "-waitforconnection"]
    return [sys.executable, "-I", "-S", str(FILTER), *client, *wait, *args]
