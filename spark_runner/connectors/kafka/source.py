"""Topics of Apache Kafka as a source."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.kafka.changes import DEBEZIUM
from spark_runner.connectors.kafka.client import Brokers, brokers, spark_options
from spark_runner.connectors.kafka.debezium import with_change, with_events
from spark_runner.connectors.kafka.formats import decoded, of_key
from spark_runner.connectors.kafka.positions import GROUP, LATEST, SPECIFIC, TIMESTAMP, position
from spark_runner.connectors.kafka.positions import spark_options as position_options

METADATA = "_metadata"  # the column with what Kafka keeps of each record; Spark has one for files alone
_SPECIAL = ("topic_column", "headers_column", "delete_column")
# The second reader of Spark 4.1 fails after a micro-batch that a restart repeats (SPARK-55271).
_ON_FIRST_READER = "spark.sql.streaming.disabledV2MicroBatchReaders"
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_VALUE = "__orchestrator_value"
_KEY = "__orchestrator_key"


class KafkaSource:
    """Reads the records of topics, in batches and micro-batches."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The records that are there; a value that does not fit the declared columns fails the job."""
        return _columns(self._batch(session, options), options, _declared(schema), None)

    def read_all(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType, record: str
    ) -> DataFrame:
        """The records that are there; values that do not fit have their text in the column `record`."""
        return _columns(self._batch(session, options), options, schema, record)

    def stream(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The records since `starting_offsets`, at the first start of the query."""
        return _columns(self._stream(session, options, None), options, _declared(schema), None)

    def stream_from(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, position: str
    ) -> DataFrame:
        """The records since a position."""
        return _columns(self._stream(session, options, position), options, _declared(schema), None)

    def stream_all(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType,
        record: str,
        position: str | None,
    ) -> DataFrame:
        """The records of a stream, also those that do not fit."""
        return _columns(self._stream(session, options, position), options, schema, record)

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
        return _columns(frame, options, _declared(schema), None).limit(rows)

    def _batch(self, session: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        given = {**_subscribed(options), **_begin(session, options, None, with_end=True)}
        return session.read.format("kafka").options(**given).load()

    def _stream(self, session: SparkSession, options: Mapping[str, Any], begin: str | None) -> DataFrame:
        given = {**_subscribed(options), **_begin(session, options, begin, with_end=False)}
        session.conf.set(_ON_FIRST_READER, _PROVIDER)
        given["maxOffsetsPerTrigger"] = str(options.get("max_offsets_per_trigger", 1_000_000))
        return session.readStream.format("kafka").options(**given).load()


def _declared(schema: StructType | None) -> StructType:
    if schema is None:
        raise ConnectorError("a table of connector 'kafka' needs declared columns")
    return schema


def _subscribed(options: Mapping[str, Any]) -> dict[str, str]:
    topics = {"subscribe": ",".join(options["topic"])}
    found = {
        **spark_options(options),
        **(topics if options["topic"] else {"subscribePattern": _pattern(options)}),
        "failOnDataLoss": str(options["fail_on_data_loss"]).lower(),
        "includeHeaders": "true",
    }
    return found | ({"minPartitions": str(options["min_partitions"])} if options["min_partitions"] else {})


def _begin(
    session: SparkSession, options: Mapping[str, Any], given: str | None, *, with_end: bool
) -> dict[str, str]:
    """Spark's options for the positions of a read; asks the brokers, so that their errors are clear."""
    with brokers(session, options) as found:
        partitions = _partitions(found, options)
        start = position(given) if given else str(options["starting_offsets"])
        if start == TIMESTAMP:
            start = str(options["starting_timestamp"])
        elif start == SPECIFIC:
            start = position(options["specific_offsets"])
        elif start == GROUP:
            start = _of_group(found, options, partitions)
        elif start == LATEST and with_end:  # which Spark refuses for a batch
            start = json.dumps(_last(found.ends(partitions)))
        end = position_options(str(options["ending_offsets"]), "ending", partitions) if with_end else {}
        return position_options(start, "starting", partitions) | end


def _partitions(found: Brokers, options: Mapping[str, Any]) -> dict[str, list[int]]:
    if options["topic"]:
        return found.partitions(list(options["topic"]))
    given = str(options["topic_pattern"] or options["subscribe_pattern"])
    if there := found.partitions(found.topics_like(_pattern(options), given), are_listed=True):
        return there
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


def _columns(
    frame: DataFrame, options: Mapping[str, Any], schema: StructType, record: str | None
) -> DataFrame:
    """The declared columns of the records, and METADATA."""
    special = {str(options[name]).lower(): name for name in _SPECIAL}
    keys = {name.lower() for name in options["key_fields"]}
    raw_or_split = options["value_fields_include"] == "except_key" or options["format"] == "raw"
    key_schema = StructType([each for each in schema if each.name.lower() in keys])
    of_value = StructType(
        [
            each
            for each in schema
            if each.name.lower() not in special and not (raw_or_split and each.name.lower() in keys)
        ]
    )
    deletes = bool(options["delete_column"])
    if deletes and not keys:
        raise ConnectorError("delete_column needs option 'key_fields' to read: which columns are the key")
    if options["format"] == DEBEZIUM:
        frame = with_events(frame, of_value, options)
    elif not deletes and options["format"] != "raw":
        frame = frame.where(sql.col("value").isNotNull())
    kept = [sql.col(name) for name in ("value", "topic", "headers")]
    parts = [decoded(frame, "value", options["format"], of_value, options, record=record).alias(_VALUE)]
    if keys and (raw_or_split or deletes):
        kind = options["key_format"] or ("raw" if len(keys) == 1 else "json")
        parts.append(decoded(frame, "key", kind, key_schema, of_key(options), record=record).alias(_KEY))
    found = frame.select(*kept, *parts, _metadata().alias(METADATA))
    if options["format"] == DEBEZIUM:
        found = with_change(found, METADATA, _VALUE)
    cells = [
        _cell(each.name, special, keys, options, raw_or_split).cast(each.dataType).alias(each.name)
        for each in schema
    ]
    unread = [] if record is None else [_unread(record, with_key=len(parts) > 1).alias(record)]
    return found.select(*cells, *unread, METADATA)


def _unread(record: str, *, with_key: bool) -> Column:
    """The text of a value that does not fit, or that of a key."""
    of_key = [sql.concat(sql.lit("key "), sql.col(_KEY)[record])] if with_key else []
    return sql.coalesce(sql.col(_VALUE)[record], *of_key)


def _cell(
    name: str, special: Mapping[str, str], keys: set[str], options: Mapping[str, Any], is_split: bool
) -> Column:
    lower = name.lower()
    match special.get(lower):
        case "topic_column":
            return sql.col("topic")
        case "headers_column":
            return _headers()
        case "delete_column":
            return sql.col("value").isNull()
    if lower in keys and is_split:
        return sql.col(_KEY)[name]
    value = sql.col(_VALUE)[name]
    return sql.coalesce(value, sql.col(_KEY)[name]) if lower in keys and options["delete_column"] else value


def _metadata() -> Column:
    names = {"key": "key", "topic": "topic", "partition": "partition", "offset": "offset"}
    cells = [sql.col(each).alias(name) for name, each in names.items()]
    cells += [sql.col("timestamp").alias("timestamp"), _timestamp_type().alias("timestamp_type")]
    return sql.struct(*cells, _headers().alias("headers"))


def _timestamp_type() -> Column:
    kind = sql.col("timestampType")
    return sql.when(kind == 0, "CreateTime").when(kind == 1, "LogAppendTime")


def _headers() -> Column:
    """The headers by their name; of several with one name the last."""
    last = (
        "map_from_entries(filter(headers, (h, i) -> NOT exists("
        "slice(headers, i + 2, greatest(size(headers) - i - 1, 0)), later -> later.key = h.key)))"
    )
    return sql.expr(last)
