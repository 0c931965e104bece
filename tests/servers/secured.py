"""A ZooKeeper with mutual TLS and two SASL users."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from queues import EmbeddedZooKeeper, ServerConfig
from queues.embedded.ports import free_ports
from queues.session import Login, Tls
from tests.servers.zookeeper import unavailable

SECRET, OTHER_SECRET = "the-secret-of-ada", "the-secret-of-bob"
ADA, BOB = Login("ada", SECRET), Login("bob", OTHER_SECRET)
JAAS = """\
Server {{
  org.apache.zookeeper.server.auth.DigestLoginModule required {users};
}};
"""


class Certificates:
    """Two authorities; the first has issued certificates for a server `localhost`, a client, a driver."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for authority in ("ca", "other"):
            self._openssl(
                *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={authority}"),
                *("-keyout", self._path(f"{authority}.key"), "-out", self._path(f"{authority}.pem")),
            )
        self._sign("server", "subjectAltName=DNS:localhost")
        self._sign("client", "subjectAltName=DNS:client")
        self._sign("driver", "subjectAltName=DNS:driver")
        self.tls = Tls(self._path("ca.pem"), self._path("client.pem"), self._path("client.key"))
        self.driver_tls = Tls(self._path("ca.pem"), self._path("driver.pem"), self._path("driver.key"))
        self.other_ca = self._path("other.pem")
        self.server = self._together("server")
        self.ca = self._path("ca.pem")

    def _sign(self, name: str, extension: str) -> None:
        key, request = self._path(f"{name}.key"), self._path(f"{name}.csr")
        Path(self._path(f"{name}.ext")).write_text(extension, "utf-8")
        self._openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        )
        self._openssl(
            *("x509", "-req", "-in", request, "-CA", self._path("ca.pem"), "-CAkey", self._path("ca.key")),
            *("-CAcreateserial", "-days", "2", "-extfile", self._path(f"{name}.ext")),
            *("-out", self._path(f"{name}.pem")),
        )

    def _together(self, name: str) -> str:
        both = "".join(Path(self._path(f"{name}.{part}")).read_text("utf-8") for part in ("key", "pem"))
        Path(self._path(f"{name}-both.pem")).write_text(both, "utf-8")
        return self._path(f"{name}-both.pem")

    def _path(self, name: str) -> str:
        return str(self._folder / name)

    @staticmethod
    def _openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@dataclass(frozen=True)
class Secured:
    server: EmbeddedZooKeeper
    secure_port: int
    certificates: Certificates
    jaas: Path

    @property
    def plain(self) -> str:
        return self.server.hosts

    def hosts(self, host: str = "localhost") -> str:
        return f"{host}:{self.secure_port}"

    def users(self, *logins: Login) -> None:
        users = " ".join(f'user_{login.user}="{login.secret()}"' for login in logins)
        self.jaas.write_text(JAAS.format(users=users), "utf-8")


@contextmanager
def secured_server(folder: Path) -> Iterator[Secured]:
    """Yield a running server; its plain port is also open. Needs `openssl`."""
    certificates, (port,) = Certificates(folder), free_ports("127.0.0.1", 1)
    jaas = folder / "jaas.conf"
    config = ServerConfig(
        folder / "server",
        tick_ms=500,
        settings=(
            ("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
            ("secureClientPort", str(port)),
            ("ssl.keyStore.location", certificates.server),
            ("ssl.trustStore.location", certificates.ca),
            ("ssl.clientAuth", "need"),
            ("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
        ),
        jvm_options=(f"-Djava.security.auth.login.config={jaas}",),
    )
    made = Secured(EmbeddedZooKeeper(config), port, certificates, jaas)
    made.users(ADA, BOB)
    with made.server:
        yield made


@contextmanager
def bundling_proxy(secured: Secured) -> Iterator[str]:
    """A TLS proxy before the plain port that merges concurrent replies into one record, as proxies may."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(secured.certificates.server)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            with contextlib.suppress(OSError):
                client = stack.enter_context(context.wrap_socket(listener.accept()[0], server_side=True))
                server = stack.enter_context(socket.create_connection(("127.0.0.1", secured.server.port)))
                threading.Thread(target=forward, args=(client, server), daemon=True).start()
                while first := server.recv(4096):
                    server.settimeout(0.1)
                    client.sendall(first + _all_that_comes(server))
                    server.settimeout(None)

        def forward(client: ssl.SSLSocket, server: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := client.recv(65536):
                    server.sendall(data)
                server.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=serve, daemon=True).start()
        yield f"localhost:{listener.getsockname()[1]}"


def _all_that_comes(server: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(TimeoutError):
        while len(data) < 10_000 and (more := server.recv(4096)):  # a record has 16 KiB at most
            data += more
    return data


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates for all tests of one process."""
    if shutil.which("openssl") is None:
        unavailable("no openssl to make certificates with")
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A secured server for all tests of one process."""
    if shutil.which("openssl") is None:
        unavailable("no openssl to make certificates with")
    with secured_server(tmp_path_factory.mktemp("secured")) as server:
        yield server
