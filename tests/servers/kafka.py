"""A real Kafka for tests: from the environment, else a broker on this host, also with TLS and logins."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from queues.embedded.ports import free_ports
from tests.servers.daemons import END_TIMEOUT_S, JavaDaemon, fetched_jars
from tests.servers.secured import Certificates
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

VERSION = "4.1.2"
START_TIMEOUT_S = 90
TOPIC_TIMEOUT_MS = 20_000
ADA, BOB = ("ada", "the-secret-of-ada"), ("bob", "the-secret-of-bob")
"""Users of the secured listener: ada may do everything, bob nothing."""

_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass
class Kafka:
    """A running broker; `secured` is its listener with TLS and logins, if the tests have started it."""

    servers: str
    secured: str = ""
    ca: str = ""  # the file with the authority of its certificate
    other_ca: str = ""  # that of another authority
    daemon: JavaDaemon | None = None

    @cached_property
    def _admin(self) -> Any:
        from kafka.admin import KafkaAdminClient  # noqa: PLC0415 - not loaded in a test run without Kafka

        return KafkaAdminClient(bootstrap_servers=self.servers)

    def close(self) -> None:
        """Close the connection."""
        if "_admin" in self.__dict__:
            self._admin.close()

    def create(self, topic: str, partitions: int = 1, **configs: str) -> str:
        """Create a topic; returns its name. A dot in the name of a setting is written as `_`."""
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": _dotted(configs)}
        self._admin.create_topics({topic: wanted}, timeout_ms=TOPIC_TIMEOUT_MS, wait_for_metadata=True)
        return topic

    def delete(self, topics: Iterable[str]) -> None:
        """Delete topics."""
        if found := list(topics):
            self._admin.delete_topics(found, timeout_ms=TOPIC_TIMEOUT_MS)

    def topics(self) -> list[str]:
        """The names of all topics."""
        return list(self._admin.list_topics())

    def delete_records(self, topic: str, before: int) -> None:
        """Delete the records of partition 0 before an offset, as the end of their retention does."""
        from kafka import TopicPartition  # noqa: PLC0415 - likewise

        self._admin.delete_records({TopicPartition(topic, 0): before})

    def produce(self, topic: str, values: Iterable["bytes | Record"]) -> None:
        """Add records, each on the broker at return."""
        from kafka import KafkaProducer  # noqa: PLC0415 - likewise

        producer = KafkaProducer(bootstrap_servers=self.servers, acks="all")
        try:
            sent = [producer.send(topic, **_sent(each)) for each in values]
            producer.flush()
            for each in sent:
                each.get(timeout=END_TIMEOUT_S)
        finally:
            producer.close()

    def records(self, topic: str) -> list["Record"]:
        """All records of a topic, by partition and offset."""
        from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - likewise

        consumer = KafkaConsumer(bootstrap_servers=self.servers, enable_auto_commit=False)
        try:
            parts = [
                TopicPartition(topic, each) for each in sorted(consumer.partitions_for_topic(topic) or ())
            ]
            consumer.assign(parts)
            consumer.seek_to_beginning(*parts)
            ends, found = consumer.end_offsets(parts), list[Record]()
            while any(consumer.position(each) < ends[each] for each in parts):
                for batch in consumer.poll(timeout_ms=200).values():
                    found += [
                        Record(each.value, each.key, dict(each.headers or ()), each.partition, each.offset)
                        for each in batch
                    ]
            return sorted(found, key=lambda each: (each.partition or 0, each.offset))
        finally:
            consumer.close()

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Store the position of a consumer group in partition 0."""
        from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition  # noqa: PLC0415 - likewise

        consumer = KafkaConsumer(bootstrap_servers=self.servers, group_id=group, enable_auto_commit=False)
        try:
            part = TopicPartition(topic, 0)
            consumer.assign([part])
            consumer.commit({part: OffsetAndMetadata(offset, "", -1)})
        finally:
            consumer.close()


@dataclass(frozen=True)
class Record:
    """One record."""

    value: bytes | None
    key: bytes | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    partition: int | None = None
    offset: int = 0
    timestamp_ms: int | None = None


def _dotted(configs: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in configs.items()}


def _sent(record: bytes | Record) -> dict[str, Any]:
    if isinstance(record, bytes):
        return {"value": record}
    found = {"value": record.value, "key": record.key, "headers": list(record.headers.items())}
    return {**found, "partition": record.partition, "timestamp_ms": record.timestamp_ms}


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
        yield _started(Path(name), stack)


@pytest.fixture
def topics(kafka: Kafka) -> Iterator[Topics]:
    """Topics for one test."""
    made = Topics(kafka, f"test-{uuid.uuid4().hex[:12]}-")
    yield made
    kafka.delete(each for each in kafka.topics() if each.startswith(made.prefix))


def _started(folder: Path, stack: ExitStack) -> Kafka:
    jars = fetched_jars(f"kafka-{VERSION}", {"org.apache.kafka:kafka_2.13": VERSION}, f"Kafka {VERSION}")
    certificates = Certificates(folder)
    plain, secured, controller = free_ports("127.0.0.1", 3)
    file = folder / "kafka.properties"
    properties = _properties(folder, certificates, plain, secured, controller)
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), "utf-8")
    java = ["java", *_JVM, "-cp", f"{jars}/*"]
    _format([*java, "kafka.tools.StorageTool"], str(file))
    daemon = JavaDaemon(folder, "broker", [*java, "kafka.Kafka", str(file)], ("--grace", "5"))
    stack.callback(daemon.close)
    daemon.start()
    found = Kafka(
        f"127.0.0.1:{plain}", f"localhost:{secured}", certificates.ca, certificates.other_ca, daemon
    )
    stack.callback(found.close)
    wait_until(lambda: daemon.has_ended() or _answers(found.servers), START_TIMEOUT_S, "Kafka answers")
    if daemon.has_ended():
        unavailable(f"no Kafka: the broker has ended: {daemon.last_words()}")
    return found


def _format(tool: Sequence[str], file: str) -> None:
    cluster = str(uuid.uuid4().hex[:22])
    command = [*tool, "format", "-t", cluster, "-c", file, "--standalone"]
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
    folder: Path, certificates: Certificates, plain: int, secured: int, controller: int
) -> dict[str, str]:
    listener = "listener.name.sasl_ssl"
    users = " ".join(f'user_{name}="{password}"' for name, password in (ADA, BOB))
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": (
            f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}"
        ),
        # The certificate has this name alone.
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://localhost:{secured}",
        "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"),
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
        f"{listener}.sasl.enabled.mechanisms": "PLAIN",
        f"{listener}.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
        f"{listener}.ssl.keystore.type": "PEM",
        f"{listener}.ssl.keystore.location": certificates.server,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{ADA[0]}",
    }
