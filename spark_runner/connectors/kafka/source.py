"""Topics of Apache Kafka as a source."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Never

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.kafka.client import Brokers, brokers, spark_options
from spark_runner.connectors.kafka.columns import columns
from spark_runner.connectors.kafka.identities import check_same_topics, identity, topics_of
from spark_runner.connectors.kafka.positions import EARLIEST, GROUP, LATEST, SPECIFIC, TIMESTAMP, position
from spark_runner.connectors.kafka.positions import spark_options as position_options

# The second reader of Spark 4.1 fails after a micro-batch that a restart repeats (SPARK-55271).
_ON_FIRST_READER = "spark.sql.streaming.disabledV2MicroBatchReaders"
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

# Spark hands out a poll record by record, and each poll waits for the thread of the client: with Kafka's own
# 500, a read takes a sixth longer. The records of a poll come from one fetch, which bounds their bytes.
_POLL = "10000"


class KafkaSource:
    """Reads the records of topics, in batches and micro-batches."""

    limit_option: ClassVar[str] = "max_offsets_per_trigger"
    limit_of_spark: ClassVar[str] = "maxOffsetsPerTrigger"

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The records that are there; a value that does not fit the declared columns fails the job."""
        return columns(self._batch(session, options), options, _declared(schema), None)

    def read_all(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType, record: str
    ) -> DataFrame:
        """The records that are there; values that do not fit have their text in the column `record`."""
        return columns(self._batch(session, options), options, schema, record)

    def stream(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The records since `starting_offsets`, at the first start of the query."""
        return self.stream_after(session, options, schema, None, ())

    def stream_from(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, position: str
    ) -> DataFrame:
        """The records since a position."""
        return self.stream_after(session, options, schema, position, ())

    def resumes(self, options: Mapping[str, Any], position: str | None) -> bool:
        """Where the stream begins at the position of a group, which may be gone before the next start."""
        return _start(options, position) == GROUP

    def stream_after(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType | None,
        position: str | None,
        reached: Sequence[str] | None,
    ) -> DataFrame:
        """Likewise; the group is asked only for a query that has not begun."""
        return columns(self._stream(session, options, position, reached), options, _declared(schema), None)

    def stream_all(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType,
        record: str,
        position: str | None,
        *,
        reached: Sequence[str] | None,
    ) -> DataFrame:
        """The records of a stream, also those that do not fit."""
        return columns(self._stream(session, options, position, reached), options, schema, record)

    def identities(
        self, session: SparkSession, options: Mapping[str, Any], known: Sequence[str], reached: Sequence[str]
    ) -> Sequence[str]:
        """The ids of the topics; raises ConnectorError for offsets of a topic that was created anew since."""
        with brokers(session, options) as found:
            topics = _topics(found, options)
            ids = found.ids(topics, are_listed=not options["topic"])
        if options["fail_on_data_loss"]:
            check_same_topics(ids, known, reached)
        return [identity(*each) for each in ids.items()]

    def sample(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, rows: int
    ) -> DataFrame:
        """The last records of each partition, at most `rows` in all."""
        with brokers(session, options) as found:
            partitions = _partitions(found, options)
            ends = found.ends(partitions)
        share = max(1, rows // max(1, sum(map(len, partitions.values()))))
        starts = {
            topic: {str(number): max(first, last - share) for number, (first, last) in numbers.items()}
            for topic, numbers in ends.items()
        }
        given = {**_subscribed(options), "startingOffsets": json.dumps(starts)}
        frame = session.read.format("kafka").options(**given).load()
        return columns(frame, options, _declared(schema), None).limit(rows)

    def _batch(self, session: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        given = {**_subscribed(options), **_range(session, options)}
        return session.read.format("kafka").options(**given).load()

    def _stream(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        begin: str | None,
        reached: Sequence[str] | None,
    ) -> DataFrame:
        given = {**_subscribed(options), **_begin(session, options, begin, reached)}
        session.conf.set(_ON_FIRST_READER, _PROVIDER)
        given[self.limit_of_spark] = str(options.get(self.limit_option, 1_000_000))
        return session.readStream.format("kafka").options(**given).load()


def _declared(schema: StructType | None) -> StructType:
    if schema is None:
        raise ConnectorError("a table of connector 'kafka' needs declared columns")
    return schema


def _subscribed(options: Mapping[str, Any]) -> dict[str, str]:
    topics = {"subscribe": ",".join(options["topic"])}
    found = {
        "kafka.max.poll.records": _POLL,
        **spark_options(options),
        **(topics if options["topic"] else {"subscribePattern": _pattern(options)}),
        "failOnDataLoss": str(options["fail_on_data_loss"]).lower(),
        "includeHeaders": "true",
    }
    return found | ({"minPartitions": str(options["min_partitions"])} if options["min_partitions"] else {})


def _start(options: Mapping[str, Any], given: str | None) -> str:
    return position(given) if given else str(options["starting_offsets"])


def _begin(
    session: SparkSession, options: Mapping[str, Any], given: str | None, reached: Sequence[str] | None
) -> dict[str, str]:
    """Spark's options for where a stream begins; asks the brokers, so that their errors are clear."""
    with brokers(session, options) as found:
        partitions = _partitions(found, options)
        return _starting(found, options, _start(options, given), partitions, reached)


def _starting(
    found: Brokers,
    options: Mapping[str, Any],
    start: str,
    partitions: Mapping[str, list[int]],
    reached: Sequence[str] | None,
) -> dict[str, str]:
    if start == TIMESTAMP:
        start = str(options["starting_timestamp"])
    elif start == SPECIFIC:
        start = position(options["specific_offsets"])
    elif start == GROUP:
        # Spark takes the offsets of the checkpoint, if it has any; and no query starts before it is known.
        has_begun = reached is None or not topics_of(reached).isdisjoint(partitions)
        start = EARLIEST if has_begun else _of_group(found, options, partitions)
    return position_options(start, "starting", partitions)


def _range(session: SparkSession, options: Mapping[str, Any]) -> dict[str, str]:
    """Spark's options for the records that a batch reads."""
    with brokers(session, options) as found:
        partitions = _partitions(found, options)
        start = _start(options, None)
        if start == LATEST:  # which Spark refuses for a batch
            start = json.dumps(_last(found.ends(partitions)))
        end = position_options(str(options["ending_offsets"]), "ending", partitions)
        return _starting(found, options, start, partitions, ()) | end


def _partitions(found: Brokers, options: Mapping[str, Any]) -> dict[str, list[int]]:
    listed = not options["topic"]
    return found.partitions(_topics(found, options), are_listed=listed) or _no_topic(options)


def _topics(found: Brokers, options: Mapping[str, Any]) -> list[str]:
    if options["topic"]:
        return list(options["topic"])
    given = str(options["topic_pattern"] or options["subscribe_pattern"])
    return found.topics_like(_pattern(options), given)


def _no_topic(options: Mapping[str, Any]) -> Never:
    given = str(options["topic_pattern"] or options["subscribe_pattern"])
    hint = "; topic_pattern has to match whole names" if options["topic_pattern"] else ""
    raise ConnectorError(
        f"no topic at {options['bootstrap_servers']} that this user may see matches '{given}'{hint}"
    )


def _pattern(options: Mapping[str, Any]) -> str:
    """The pattern for Spark, which looks for it in any part of a name."""
    whole = options["topic_pattern"]
    return f"^(?:{whole})$" if whole else str(options["subscribe_pattern"])


def _last(ends: Mapping[str, Mapping[int, tuple[int, int]]]) -> dict[str, dict[str, int]]:
    return {topic: {str(number): last for number, (_, last) in each.items()} for topic, each in ends.items()}


def _of_group(found: Brokers, options: Mapping[str, Any], partitions: Mapping[str, list[int]]) -> str:
    if not options["group_id"]:
        raise ConnectorError("starting_offsets 'group-offsets' needs option 'group_id'")
    stored = found.committed(str(options["group_id"]), partitions)
    if not stored:
        raise ConnectorError(
            f"consumer group '{options['group_id']}' has stored no position in these topics; begin at"
            " 'earliest' or 'latest'"
        )
    return json.dumps(stored)
