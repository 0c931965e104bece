"""The settings of Kafka's clients for a table, and what a topic and its brokers look like from the driver."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.java_classes import java_class
from spark_runner.connectors.kafka.failures import NoTopic, explained_or_passing

ANSWER_SECONDS = 10  # for the brokers to answer before a read or a write begins
_ADMIN = "org.apache.kafka.clients.admin.AdminClient"
_LOGINS = "org.apache.kafka.common.security"
_PEM = {  # option -> setting of the client
    "ssl_ca": "ssl.truststore.certificates",
    "ssl_certificate": "ssl.keystore.certificate.chain",
    "ssl_key": "ssl.keystore.key",
    "ssl_key_password": "ssl.key.password",
}
_BOUNDS = {  # milliseconds, where the table sets nothing: an error comes before people give up
    "request.timeout.ms": "15000",
    "default.api.timeout.ms": "30000",
    "max.block.ms": "30000",
}


def client_settings(options: Mapping[str, Any]) -> dict[str, str]:
    """The settings that all clients of a table have, with passwords in clear text."""
    found = {name.partition(".")[2]: str(each) for name, each in options.items() if "properties." in name}
    found["bootstrap.servers"] = str(options["bootstrap_servers"])
    if options["group_id"]:
        found["group.id"] = options["group_id"]
    for option, setting in _PEM.items():
        if options[option]:
            found[setting] = options[option]
    if options["ssl_ca"]:
        found["ssl.truststore.type"] = "PEM"
    if options["ssl_key"]:
        found["ssl.keystore.type"] = "PEM"
    if options["username"]:
        mechanism = options["sasl_mechanism"] or "SCRAM-SHA-512"
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = f"username={_quoted(options['username'])} password={_quoted(options['password'])}"
        found["sasl.jaas.config"] = f"{_LOGINS}.{module} required {login};"
        found["sasl.mechanism"] = mechanism
    elif options["sasl_mechanism"]:
        found["sasl.mechanism"] = options["sasl_mechanism"]
    has_certificates = options["ssl_ca"] or options["ssl_key"]
    protocol = "SASL_SSL" if options["username"] else "SSL" if has_certificates else ""
    if options["security_protocol"] or protocol:
        found["security.protocol"] = options["security_protocol"] or protocol
    return found


def spark_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The same as options of Spark's source and sink, which fail in a bounded time."""
    return {f"kafka.{name}": value for name, value in {**_BOUNDS, **client_settings(options)}.items()}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Brokers:
    """The brokers of a table, asked from the driver."""

    def __init__(self, session: SparkSession, admin: Any, servers: str) -> None:
        self._session, self._admin, self._servers = session, admin, servers

    def partitions(self, topics: list[str], *, are_listed: bool = False) -> dict[str, list[int]]:
        """The numbers of the partitions of each topic; raises ConnectorError for one that is not there.

        Topics that the brokers have listed just now may be deleted meanwhile, and are left out.
        """
        return {
            topic: sorted(parts.get(index).partition() for index in range(parts.size()))
            for topic, found in self._described(topics, are_listed=are_listed)
            for parts in [found.partitions()]
        }

    def ids(self, topics: list[str], *, are_listed: bool = False) -> dict[str, str]:
        """The id that the cluster gave to each topic when it was created; brokers before 2.8 have none."""
        none = java_class(self._session, "org.apache.kafka.common.Uuid").ZERO_UUID
        found = self._described(topics, are_listed=are_listed)
        return {topic: each.topicId().toString() for topic, each in found if not each.topicId().equals(none)}

    def _described(self, topics: list[str], *, are_listed: bool) -> Iterator[tuple[str, Any]]:
        answers = self._admin.describeTopics(_java_list(self._session, topics)).topicNameValues()
        for topic in topics:
            try:
                yield topic, self._await(answers.get(topic), topic)
            except NoTopic:
                if are_listed:
                    continue
                raise

    def topics_like(self, pattern: str, given: str) -> list[str]:
        """The topics with a match in their names; raises ConnectorError for what is no pattern, as given."""
        names = self._await(self._admin.listTopics().names(), "")
        try:
            found = java_class(self._session, "java.util.regex.Pattern").compile(pattern)
        except IllegalArgumentException as error:
            reason = str(error).partition("\n")[0]
            raise ConnectorError(f"'{given}' is no pattern of Java: {reason}") from error
        # All names in one call: a cluster may have thousands of topics.
        listed = str(java_class(self._session, "java.lang.String").join("\n", names)).split("\n")
        return sorted(name for name in listed if name and found.matcher(name).find())

    def ends(self, partitions: Mapping[str, list[int]]) -> dict[str, dict[int, tuple[int, int]]]:
        """The first offset of each partition, and the one behind its last record."""
        spec = java_class(self._session, "org.apache.kafka.clients.admin.OffsetSpec")
        first, last = self._offsets(partitions, spec.earliest()), self._offsets(partitions, spec.latest())
        return {
            topic: {number: (first[topic, number], last[topic, number]) for number in numbers}
            for topic, numbers in partitions.items()
        }

    def committed(self, group: str, partitions: Mapping[str, list[int]]) -> dict[str, dict[str, int]]:
        """The offsets that a consumer group has stored for these partitions."""
        answer = self._admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()
        found = dict[str, dict[str, int]]()
        stored = self._await(answer, group)
        for topic, numbers in partitions.items():
            for number in numbers:
                offset = stored.get(self._partition(topic, number))
                if offset is not None:
                    found.setdefault(topic, {})[str(number)] = int(offset.offset())
        return found

    def _offsets(self, partitions: Mapping[str, list[int]], spec: Any) -> dict[tuple[str, int], int]:
        wanted = java_class(self._session, "java.util.HashMap")()
        keys = {
            (topic, each): self._partition(topic, each) for topic in partitions for each in partitions[topic]
        }
        for key in keys.values():
            wanted.put(key, spec)
        answer = self._admin.listOffsets(wanted)
        return {
            key: int(self._await(answer.partitionResult(each), key[0]).offset()) for key, each in keys.items()
        }

    def _partition(self, topic: str, number: int) -> Any:
        return java_class(self._session, "org.apache.kafka.common.TopicPartition")(topic, number)

    def _await(self, future: Any, topic: str) -> Any:
        seconds = java_class(self._session, "java.util.concurrent.TimeUnit").SECONDS
        try:
            return future.get(ANSWER_SECONDS + 5, seconds)
        except Py4JJavaError as error:
            raise explained_or_passing(error, self._servers, topic) from error


@contextmanager
def brokers(session: SparkSession, options: Mapping[str, Any]) -> Iterator[Brokers]:
    """The brokers of a table; raises ConnectorError if Spark has no module for Kafka."""
    settings, servers = client_settings(options), str(options["bootstrap_servers"])
    properties = java_class(session, "java.util.HashMap")()
    milliseconds = str(ANSWER_SECONDS * 1000)
    bounds = {"default.api.timeout.ms": milliseconds, "request.timeout.ms": milliseconds}
    for name, value in {**settings, **bounds}.items():
        properties.put(name, value)
    try:
        admin = java_class(session, _ADMIN).create(properties)
    except TypeError as error:
        raise ConnectorError(
            "Spark has no module for Kafka here: give its jars by `connector_jars`, or let Spark fetch them"
        ) from error
    except Py4JJavaError as error:
        raise explained_or_passing(error, servers, "") from error
    except Py4JError as error:
        raise ConnectorError(f"the client of Kafka cannot start: {error}") from error
    try:
        yield Brokers(session, admin, servers)
    finally:
        admin.close(java_class(session, "java.time.Duration").ofSeconds(0))


def _java_list(session: SparkSession, items: list[str]) -> Any:
    found = java_class(session, "java.util.ArrayList")()
    for item in items:
        found.add(item)
    return found
