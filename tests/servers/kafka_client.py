"""A client of Kafka in a process of its own, which is ordered by calls on its standard input.

The threads of the client would run Python's garbage collection, and so py4j's, in the process of the tests.
"""

import importlib
import pickle
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

ANSWER_S = 30
TOPIC_TIMEOUT_MS = 20_000


@dataclass(frozen=True)
class Record:
    """One record."""

    value: bytes | None
    key: bytes | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    partition: int | None = None
    offset: int = 0
    timestamp_ms: int | None = None


class Client:
    """Changes and reads the topics of a broker."""

    def __init__(self, servers: str) -> None:
        self._servers = servers

    @cached_property
    def _admin(self) -> Any:
        from kafka.admin import KafkaAdminClient  # noqa: PLC0415 - not loaded by those who import Record

        return KafkaAdminClient(bootstrap_servers=self._servers)

    def create(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
        self._admin.create_topics({topic: wanted}, timeout_ms=TOPIC_TIMEOUT_MS, wait_for_metadata=True)

    def delete(self, prefix: str) -> None:
        if found := [topic for topic in self._admin.list_topics() if topic.startswith(prefix)]:
            self._admin.delete_topics(found, timeout_ms=TOPIC_TIMEOUT_MS)

    def delete_records(self, topic: str, before: int) -> None:
        from kafka import TopicPartition  # noqa: PLC0415 - likewise

        self._admin.delete_records({TopicPartition(topic, 0): before})

    def delete_group(self, group: str) -> None:
        if (found := dict(self._admin.delete_groups([group]))[group]) != "OK":
            raise RuntimeError(f"group '{group}': {found}")

    def produce(self, topic: str, records: Sequence[Record]) -> None:
        from kafka import KafkaProducer  # noqa: PLC0415 - likewise

        producer = KafkaProducer(bootstrap_servers=self._servers, acks="all")
        try:
            sent = [producer.send(topic, **_sent(each)) for each in records]
            producer.flush()
            for each in sent:
                each.get(timeout=ANSWER_S)
        finally:
            producer.close()

    def records(self, topic: str) -> list[Record]:
        from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - likewise

        consumer = KafkaConsumer(bootstrap_servers=self._servers, enable_auto_commit=False)
        try:
            numbers = sorted(consumer.partitions_for_topic(topic) or ())
            parts = [TopicPartition(topic, each) for each in numbers]
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
        from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition  # noqa: PLC0415 - likewise

        consumer = KafkaConsumer(bootstrap_servers=self._servers, group_id=group, enable_auto_commit=False)
        try:
            part = TopicPartition(topic, 0)
            consumer.assign([part])
            consumer.commit({part: OffsetAndMetadata(offset, "", -1)})
        finally:
            consumer.close()


def _sent(record: Record) -> dict[str, Any]:
    found = {"value": record.value, "key": record.key, "headers": list(record.headers.items())}
    return {**found, "partition": record.partition, "timestamp_ms": record.timestamp_ms}


def packed(records: Iterable[bytes | Record]) -> list[Record]:
    """Records, also from values alone."""
    return [each if isinstance(each, Record) else Record(each) for each in records]


def main() -> None:
    """Answer calls until the end of the input: pickles of names with arguments, and of results or errors."""
    own = importlib.import_module("tests.servers.kafka_client")  # pickles name its classes, not of __main__
    client, answers = own.Client(sys.argv[1]), sys.stdout.buffer
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the tests that started it
        except EOFError:
            return
        try:
            found: tuple[bool, Any] = True, getattr(client, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - the caller raises it
            found = False, f"{type(error).__name__}: {error}"
        pickle.dump(found, answers)
        answers.flush()


if __name__ == "__main__":
    main()
