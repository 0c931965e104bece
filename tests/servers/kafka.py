"""A real Kafka for tests: from the environment, else a broker on this host, also with TLS and logins."""

import os
import pickle
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from queues.embedded.ports import free_ports
from tests.jobs_support import ENVIRONMENT_MARK
from tests.servers import kafka_client
from tests.servers.daemons import JavaDaemon, fetched_jars
from tests.servers.kafka_client import Record
from tests.servers.secured import Certificates
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

VERSION = "4.1.2"
START_TIMEOUT_S = 90
ADA, BOB = ("ada", "the-secret-of-ada"), ("bob", "the-secret-of-bob")
"""Users of the secured listener: ada may do everything, bob nothing."""
SCRAM = {"SCRAM-SHA-256": "the-256-of-ada", "SCRAM-SHA-512": "the-512-of-ada"}
"""The password of ada for each of the other mechanisms: a login by one of them proves that it is used."""

_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGINS = "org.apache.kafka.common.security"
_PLAIN, _SCRAM = f"{_LOGINS}.plain.PlainLoginModule", f"{_LOGINS}.scram.ScramLoginModule"


@dataclass(frozen=True)
class ProxiedListener:
    """A listener behind a proxy: clients that have found the broker go to its advertised port."""

    port: int
    advertised: int


@dataclass(frozen=True)
class _Listener:
    name: str
    protocol: str
    port: int
    advertised: int

    @property
    def host(self) -> str:
        """The name that clients connect to; the certificate has `localhost` alone."""
        return "127.0.0.1" if self.protocol == "PLAINTEXT" else "localhost"


@dataclass
class Kafka:
    """A running broker; `secured` is its listener with TLS and logins, if the tests have started it."""

    servers: str
    secured: str = ""
    ca: str = ""  # the file with the authority of its certificate
    other_ca: str = ""  # that of another authority
    mutual: str = ""  # a listener with TLS for clients with a certificate: `client` may do everything
    certificates: Certificates | None = None
    daemon: JavaDaemon | None = None
    proxied: ProxiedListener | None = None
    tls_proxied: ProxiedListener | None = None  # likewise, with TLS and logins
    _calls: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)  # one at a time

    @cached_property
    def _client(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", kafka_client.__name__, self.servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # It outlives the first test that uses it.
            env={name: os.environ[name] for name in os.environ if name != ENVIRONMENT_MARK},
        )

    def _call(self, name: str, *arguments: Any) -> Any:
        given, answers = self._client.stdin, self._client.stdout
        assert given is not None
        assert answers is not None
        with self._calls:
            pickle.dump((name, arguments), given)
            given.flush()
            succeeded, found = pickle.load(answers)  # noqa: S301 - of our own process
        assert succeeded, found
        return found

    def close(self) -> None:
        """End the client."""
        if "_client" in self.__dict__:
            self._client.communicate()

    def create(self, topic: str, partitions: int = 1, **configs: str) -> str:
        """Create a topic; returns its name. A dot in the name of a setting is written as `_`."""
        dotted = {name.replace("_", "."): value for name, value in configs.items()}
        self._call("create", topic, partitions, dotted)
        return topic

    def delete(self, prefix: str) -> None:
        """Delete the topics whose names begin with a prefix."""
        self._call("delete", prefix)

    def delete_records(self, topic: str, before: int) -> None:
        """Delete the records of partition 0 before an offset, as the end of their retention does."""
        self._call("delete_records", topic, before)

    def delete_group(self, group: str) -> None:
        """Delete a consumer group with its positions."""
        self._call("delete_group", group)

    def produce(self, topic: str, records: Iterable[bytes | Record]) -> None:
        """Add records, each on the broker at return."""
        self._call("produce", topic, kafka_client.packed(records))

    def records(self, topic: str) -> list[Record]:
        """All records of a topic, by partition and offset."""
        found: list[Record] = self._call("records", topic)
        return found

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Store the position of a consumer group in partition 0."""
        self._call("commit", group, topic, offset)


@dataclass
class Topics:
    """The topics of one test: their names begin with its prefix, and they are deleted after it."""

    kafka: Kafka
    prefix: str

    def new(self, name: str = "t", partitions: int = 1, **configs: str) -> str:
        """Create a topic; returns its name."""
        return self.kafka.create(f"{self.prefix}{name}", partitions, **configs)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A real broker; one per test session and xdist worker."""
    if given := os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        yield Kafka(given)
        return
    for program in ("java", "openssl"):
        if shutil.which(program) is None:
            unavailable(f"no Kafka: KAFKA_BOOTSTRAP_SERVERS is not set, and there is no {program}")
    with (
        tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as name,
        ExitStack() as stack,
    ):
        yield start_kafka(Path(name), stack)


@pytest.fixture
def topics(kafka: Kafka) -> Iterator[Topics]:
    """Topics for one test."""
    made = Topics(kafka, f"test-{uuid.uuid4().hex[:12]}-")
    yield made
    kafka.delete(made.prefix)


def start_kafka(folder: Path, stack: ExitStack) -> Kafka:
    """A broker with its files in a folder, which ends with the stack."""
    jars = fetched_jars(f"kafka-{VERSION}", {"org.apache.kafka:kafka_2.13": VERSION}, f"Kafka {VERSION}")
    certificates = Certificates(folder)
    plain, secured, mutual, controller, *others = free_ports("127.0.0.1", 8)
    proxied, tls_proxied = ProxiedListener(*others[:2]), ProxiedListener(*others[2:])
    listeners = (
        _Listener("PLAINTEXT", "PLAINTEXT", plain, plain),
        _Listener("SASL_SSL", "SASL_SSL", secured, secured),
        _Listener("MUTUAL", "SSL", mutual, mutual),
        _Listener("PROXIED", "PLAINTEXT", proxied.port, proxied.advertised),
        _Listener("TLS_PROXIED", "SASL_SSL", tls_proxied.port, tls_proxied.advertised),
    )
    file = folder / "kafka.properties"
    properties = _properties(folder, certificates, controller, listeners)
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), "utf-8")
    java = ["java", *_JVM, "-cp", f"{jars}/*"]
    _format([*java, "kafka.tools.StorageTool"], str(file))
    daemon = JavaDaemon(folder, "broker", [*java, "kafka.Kafka", str(file)], ("--grace", "5"))
    stack.callback(daemon.close)
    daemon.start()
    found = Kafka(
        f"127.0.0.1:{plain}",
        f"localhost:{secured}",
        certificates.ca,
        certificates.other_ca,
        f"localhost:{mutual}",
        certificates,
        daemon,
        proxied,
        tls_proxied,
    )
    stack.callback(found.close)
    wait_until(lambda: daemon.has_ended() or _answers(found.servers), START_TIMEOUT_S, "Kafka answers")
    if daemon.has_ended():
        unavailable(f"no Kafka: the broker has ended: {daemon.last_words()}")
    return found


def _format(tool: Sequence[str], file: str) -> None:
    cluster = str(uuid.uuid4().hex[:22])
    command = [*tool, "format", "-t", cluster, "-c", file, "--standalone"]
    for mechanism, password in SCRAM.items():
        command += ["--add-scram", f"{mechanism}=[name={ADA[0]},password={password}]"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
    if made.returncode:
        unavailable(f"no Kafka: its storage cannot be formatted: {made.stdout[-1000:]}{made.stderr[-1000:]}")


def _answers(address: str) -> bool:
    """Whether the broker accepts connections, which it does when it is ready."""
    host, _, port = address.partition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False


def _properties(
    folder: Path, certificates: Certificates, controller: int, listeners: Sequence[_Listener]
) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in (ADA, BOB))
    of_protocol = {
        "PLAINTEXT": {},
        "SASL_SSL": {
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
            "plain.sasl.jaas.config": f"{_PLAIN} required {users};",
            **{f"{each.lower()}.sasl.jaas.config": f"{_SCRAM} required;" for each in SCRAM},
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.server,
        },
        "SSL": {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.server,
            "ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": certificates.ca,
        },
    }
    bound = [f"{each.name}://127.0.0.1:{each.port}" for each in listeners]
    protocols = [f"{each.name}:{each.protocol}" for each in listeners]
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join((*bound, f"CONTROLLER://127.0.0.1:{controller}")),
        "advertised.listeners": ",".join(
            f"{each.name}://{each.host}:{each.advertised}" for each in listeners
        ),
        "listener.security.protocol.map": ",".join((*protocols, "CONTROLLER:PLAINTEXT")),
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "log.segment.delete.delay.ms": "1000",
        "log.retention.ms": "-1",  # tests write records with times long ago
        **{
            f"listener.name.{each.name.lower()}.{name}": value
            for each in listeners
            for name, value in of_protocol[each.protocol].items()
        },
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{ADA[0]};User:CN=client",
    }
