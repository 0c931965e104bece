"""A server of an ensemble on several hosts: its members, and what protects their connections.

All servers of an ensemble have the same file with one key and its certificate. A server trusts this
certificate alone, so only who has the key can be a member. Clients verify the servers by the certificate.
All nodes belong to one login, whose password the servers share, too: other clients have no rights.
"""

import errno
import hashlib
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from queues.embedded.config import EnsembleMember, ServerConfig
from queues.embedded.directory import EMBEDDED_USER
from queues.model.errors import InvalidEnsemble, PortTaken, ServerStartFailed
from queues.session.settings import Login

DEFAULT_PORTS = (2181, 2888, 3888)
"""ZooKeeper's usual ports: of clients, of the connections to the leader, of elections."""

FEWEST_MEMBERS = 3
"""An ensemble of two stops when either of its servers is lost."""

HEAP_MB = 1024
SHORTEST_PASSWORD = 16

PEER_TIMEOUT_S = 2.0
CERTIFICATE_FILE = "ensemble.pem"  # ZooKeeper tells the format by the ending
_MEMBER = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})))"
    r"(?P<ports>(?::[0-9]{1,5}){0,3})"
)
_ADDRESS = re.compile(r"[0-9.]+|.*:.*")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\s.+?-----END CERTIFICATE-----", re.DOTALL)
_LOOPBACK = ("127.", "::1")
_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Member:
    """A server: its host, and its ports for clients, for followers and for elections."""

    host: str
    client_port: int
    quorum_port: int
    election_port: int

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"{_bracketed(self.host)}:{self.client_port}"

    @property
    def server(self) -> str:
        """The value of `server.N` in zoo.cfg."""
        return f"{_bracketed(self.host)}:{self.quorum_port}:{self.election_port}"

    def ports(self) -> tuple[int, int, int]:
        """The ports on which the server listens."""
        return self.client_port, self.quorum_port, self.election_port


def parse_members(text: str) -> tuple[Member, ...]:
    """The members in `host[:port[:quorum-port[:election-port]]],...`; raises InvalidEnsemble."""
    members = tuple(_member(part.strip()) for part in text.split(","))
    if len(members) < FEWEST_MEMBERS:
        raise InvalidEnsemble(
            f"an ensemble needs {FEWEST_MEMBERS} servers or more, {text!r} names {len(members)}: with fewer, "
            "the loss of one server stops it"
        )
    taken = [(member.host.lower(), port) for member in members for port in member.ports()]
    for host, port in taken:
        if taken.count((host, port)) > 1:
            raise InvalidEnsemble(
                f"the ensemble names port {port} of {host} twice; servers of one host need ports of their "
                "own: host:port:quorum-port:election-port"
            )
    return members


def _member(text: str) -> Member:
    found = _MEMBER.fullmatch(text)
    ports = [] if found is None else [int(port) for port in found["ports"].split(":")[1:]]
    if found is None or not all(0 < port <= _HIGHEST_PORT for port in ports):
        raise InvalidEnsemble(
            f"{text!r} is no server of an ensemble; write host, or host:port:quorum-port:election-port "
            f"(default: {':'.join(map(str, DEFAULT_PORTS))})"
        )
    client, quorum, election = (*ports, *DEFAULT_PORTS[len(ports) :])
    return Member(found["v6"] or found["name"], client, quorum, election)


def own_id(members: Sequence[Member], host_name: str) -> int | None:
    """The number of the member that this host is, from 1; None if that is not clear.

    It is the only one with the name of this host (a name without a domain equals the first label of one with
    a domain), or else the only one with an address of this host.
    """
    name = host_name.lower()
    numbers = range(1, len(members) + 1)
    hosts = [member.host.lower() for member in members]
    for is_own in (
        lambda host: host == name,
        lambda host: not _ADDRESS.fullmatch(host) and host.partition(".")[0] == name.partition(".")[0],
        _is_local,
    ):
        found = [number for number, host in zip(numbers, hosts, strict=True) if is_own(host)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _is_local(host: str) -> bool:
    try:
        with _bound(host, 0):
            return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The members, the number of this server among them, and the secrets that all of them share."""

    members: tuple[Member, ...]
    id: int
    certificate_file: Path
    login: Login

    @property
    def own(self) -> Member:
        """This server."""
        return self.members[self.id - 1]

    @property
    def hosts(self) -> str:
        """Connection string for clients."""
        return ",".join(member.address for member in self.members)

    def others(self) -> list[tuple[int, Member]]:
        """The other servers by number."""
        return [pair for pair in enumerate(self.members, 1) if pair[0] != self.id]

    def config(self, data_dir: Path, owner: str) -> ServerConfig:
        """The settings of this server; raises InvalidEnsemble for unusable files.

        Clients use the port with TLS. The plain one is on loopback, for this process.
        """
        pem = self._pem()
        self._check_password()
        settings = {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": str(self.own.client_port),
            "secureClientPortAddress": self.own.host,
            "ssl.keyStore.location": f"./{CERTIFICATE_FILE}",
            "ssl.trustStore.location": f"./{CERTIFICATE_FILE}",
            "ssl.clientAuth": "none",
            "sslQuorum": "true",
            "ssl.quorum.keyStore.location": f"./{CERTIFICATE_FILE}",
            "ssl.quorum.trustStore.location": f"./{CERTIFICATE_FILE}",
            "ssl.quorum.clientAuth": "need",
            # The key proves the membership; names of hosts would need reverse DNS.
            "ssl.quorum.hostnameVerification": "false",
        }
        servers = tuple((number, member.server) for number, member in enumerate(self.members, 1))
        return ServerConfig(
            data_dir,
            heap_mb=HEAP_MB,
            long_run=True,
            closed=True,
            login=self.login,
            owner=owner,
            member=EnsembleMember(self.id, servers, _fingerprint(pem)),
            settings=tuple(settings.items()),
            files=((CERTIFICATE_FILE, pem),),
        )

    def check_ports(self) -> None:
        """Check that this host can listen at the member's address; raises ServerStartFailed, PortTaken."""
        own = self.own
        for port in own.ports():
            try:
                with _bound(own.host, port) as listener:
                    listener.listen(1)
                    is_reachable = not listener.getsockname()[0].startswith(_LOOPBACK)
            except socket.gaierror as error:
                raise ServerStartFailed(
                    f"server {self.id} of the ensemble is {own.host}, and this name has no address here: "
                    f"{error.strerror}"
                ) from error
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise PortTaken(own.host, port) from error
                raise ServerStartFailed(
                    f"server {self.id} of the ensemble is {own.host}, which is no address of this host "
                    f"({error.strerror}); --id must be the number of this host in --ensemble"
                ) from error
            if not is_reachable and not own.host.startswith((*_LOOPBACK, "localhost")):
                raise ServerStartFailed(
                    f"{own.host} has an address of loopback here, which other hosts cannot reach; remove it "
                    "from that line of /etc/hosts, or write addresses in --ensemble"
                )

    def strangers(self) -> list[Member]:
        """The other servers that run with another certificate; one that does not answer is not among them."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=_certificate(self._pem()))
        context.load_cert_chain(self.certificate_file)
        return [member for _, member in self.others() if _is_stranger(member, context)]

    def _pem(self) -> str:
        """The text of the file with key and certificate, which must be of one pair."""
        path = self.certificate_file
        try:
            text = path.read_text("utf-8")
            if not _CERTIFICATE.search(text):
                raise InvalidEnsemble(f"{path} contains no certificate (PEM)")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path, password="")  # an encrypted key must not ask the terminal
        except ssl.SSLError as error:
            raise InvalidEnsemble(
                f"{path} must contain a key without a password and its certificate, both in PEM: "
                f"{error.reason or error}"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidEnsemble(f"the certificate of the ensemble cannot be read: {error}") from error
        return text

    def _check_password(self) -> None:
        try:
            found = self.login.secret()
        except OSError as error:
            raise InvalidEnsemble(f"the password of the ensemble cannot be read: {error}") from error
        if len(found) < SHORTEST_PASSWORD or not found.isprintable():
            raise InvalidEnsemble(
                f"{self.login.password_file} must contain one line of {SHORTEST_PASSWORD} or more printable "
                "characters, for example from `openssl rand -base64 32`"
            )


def ensemble_login(password_file: Path) -> Login:
    """The login that all clients of an ensemble use."""
    return Login(EMBEDDED_USER, password_file=str(password_file))


def _bound(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _is_stranger(member: Member, context: ssl.SSLContext) -> bool:
    try:
        with (
            socket.create_connection((member.host, member.election_port), PEER_TIMEOUT_S) as plain,
            context.wrap_socket(plain),
        ):
            return False
    except ssl.SSLCertVerificationError:
        return True
    except OSError:  # it is down, starts, or has closed the connection
        return False


def _certificate(pem: str) -> str:
    return "\n".join(_CERTIFICATE.findall(pem))


def _fingerprint(pem: str) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(_CERTIFICATE.findall(pem)[0])).hexdigest()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
