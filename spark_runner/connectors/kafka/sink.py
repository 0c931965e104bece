"""Topics of Apache Kafka as a sink."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.kafka.client import brokers, spark_options
from spark_runner.connectors.kafka.failures import explained
from spark_runner.connectors.kafka.formats import encoded, of_key, read_schema
from spark_runner.connectors.kafka.marks import with_mark
from spark_runner.connectors.rows import column

# Spark would write through a query of its own, whose rows an observation does not count.
_ON_V1, _WITHOUT_KAFKA = "spark.sql.sources.useV1SourceList", "avro,csv,json,orc,parquet,text"
_NO_KEY = "a row has NULL in the key of its record"


class KafkaSink:
    """Adds a record for each row; with a key, a reader takes the last record of each key."""

    def __init__(self) -> None:
        # Servers and topic that have answered since the start of the driver.
        self._seen = set[tuple[str, str]]()
        self._schemas = dict[str, str]()  # of Avro, by their files

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave the records of earlier attempts: nothing can remove them from a topic."""

    def probe(self, session: SparkSession, options: Mapping[str, Any], schema: StructType) -> None:
        """Raise ConnectorError if the topic is not there, or the brokers do not answer."""
        topic = _topic(options)
        if topic and (str(options["bootstrap_servers"]), topic) not in self._seen:
            with brokers(session, options) as found:
                found.partitions([topic])
            self._seen.add((str(options["bootstrap_servers"]), topic))
        _parts(schema.fieldNames(), options, ())

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Write all rows; a failure may leave some of them in the topic."""
        if request.mode == "overwrite":
            raise ConnectorError("a topic keeps its records; write INSERT INTO")
        self.probe(frame.sparkSession, options, frame.schema)
        records = _records(frame, self._with_schema(frame.sparkSession, options), request.primary_key)
        observation = Observation()
        counted = records.observe(observation, sql.expr("count(1)").alias("rows"))
        given = {f"kafka.{name}": each for name, each in _PRODUCER.items()} | spark_options(options)
        given |= {"includeHeaders": "true"} | (
            {} if options["topic_column"] else {"topic": _topic(options)}  # it would win over the column
        )
        frame.sparkSession.conf.set(_ON_V1, _WITHOUT_KAFKA)
        try:
            counted.write.format("kafka").mode("append").options(**given).save()
        except Exception as error:
            found = explained(error, str(options["bootstrap_servers"]), _topic(options))
            if found is None:
                raise
            raise found from error
        return Written(int(observation.get["rows"]))

    def _with_schema(self, session: SparkSession, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options with the text of the file of a schema: all micro-batches of a query have one schema."""
        file = str(options["avro_schema_file"])
        if not file or options["avro_schema"]:
            return options
        if file not in self._schemas:
            self._schemas[file] = read_schema(session, file)
        return {**options, "avro_schema": self._schemas[file]}


_PRODUCER = {"acks": "all", "enable.idempotence": "true"}  # no record is lost, or reordered by a retry


def _topic(options: Mapping[str, Any]) -> str:
    """The topic of records that name none."""
    topics = options["topic"]
    if len(topics) > 1 or (not topics and not options["topic_column"]):
        raise ConnectorError("a table to write has one topic, or the option 'topic_column'")
    return str(topics[0]) if topics else ""


def _parts(
    names: Sequence[str], options: Mapping[str, Any], primary_key: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The columns of the key and those of the value."""
    given = {name.lower() for name in options["key_fields"]}
    primary = {name.lower() for name in primary_key}
    if given and primary and given != primary:
        raise ConnectorError("key_fields and PRIMARY KEY name different columns; give one of them")
    key = given | primary
    special = {str(options[name]).lower() for name in ("topic_column", "headers_column", "delete_column")}
    is_split = options["value_fields_include"] == "except_key" or options["format"] == "raw"
    left_out = special | (key if is_split else set())
    keys, values = [n for n in names if n.lower() in key], [n for n in names if n.lower() not in left_out]
    if options["format"] == "raw" and len(values) != 1:
        raise ConnectorError(
            f"format 'raw' has one column beside the key, not {len(values)} ({', '.join(values)})"
        )
    return keys, values


def _records(frame: DataFrame, options: Mapping[str, Any], primary_key: Sequence[str]) -> DataFrame:
    """The columns that Spark's sink takes: key, value, headers, topic."""
    keys, values = _parts(frame.columns, options, primary_key)
    needs_key = bool(primary_key or options["delete_column"] or options["version"] == "universal-upsert")
    if needs_key and not keys:
        raise ConnectorError("the records need a key: declare a PRIMARY KEY, or give option 'key_fields'")
    value = encoded(frame, values, options["format"], options)
    if options["delete_column"]:
        is_gone = sql.coalesce(column(_written(frame, options["delete_column"])), sql.lit(False))
        value = sql.when(~is_gone, value)
    cells = [value.alias("value")]
    if keys:
        kind = options["key_format"] or ("raw" if len(keys) == 1 else "json")
        key = encoded(frame, keys, kind, of_key(options), is_key=True)
        cells.append((_checked(key, keys) if needs_key else key).alias("key"))
    given = options["headers_column"]
    headers = with_mark(_headers(_written(frame, given)) if given else None, options)
    if headers is not None:
        cells.append(headers.alias("headers"))
    if options["topic_column"]:
        fallback = [sql.lit(_topic(options))] if _topic(options) else []
        topic = column(_written(frame, options["topic_column"]))
        cells.append(sql.coalesce(topic, *fallback).alias("topic"))
    return frame.select(*cells)


def _checked(key: Column, keys: Sequence[str]) -> Column:
    has_null = column(keys[0]).isNull()
    for name in keys[1:]:
        has_null |= column(name).isNull()
    words = f"{_NO_KEY} ({', '.join(keys)})"
    return sql.when(has_null, sql.raise_error(sql.lit(words)).cast("binary")).otherwise(key)


def _headers(name: str) -> Column:
    """The headers as Spark's sink takes them."""
    entries = sql.map_entries(column(name))
    return sql.transform(
        entries,
        lambda each: sql.struct(
            each["key"].cast("string").alias("key"), each["value"].cast("binary").alias("value")
        ),
    )


def _written(frame: DataFrame, name: str) -> str:
    """The name of a column as the frame has it; raises ConnectorError without the column."""
    found = next((each for each in frame.columns if each.lower() == name.lower()), None)
    if found is None:
        raise ConnectorError(f"the rows have no column '{name}'")
    return found
