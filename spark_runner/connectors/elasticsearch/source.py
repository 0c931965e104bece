"""Documents of Elasticsearch as rows."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.python_source import TableSource, read_by
from spark_runner.protocol.redacted import spellings_within

METADATA = "_metadata"
_UNREAD = "__orchestrator_unread"
_HIT = StructType(
    [
        StructField("_id", StringType()),
        StructField("_index", StringType()),
        StructField("_version", LongType()),
    ]
)
_MAX_SLICES = 1024  # the default of the setting index.max_slices_per_pit


class ElasticsearchSource:
    """The documents of an index, or of several, at one point in time; each slice of it is a partition."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The declared columns; a document that does not fit them fails the job."""
        if schema is None:
            raise ConnectorError("a table of connector 'elasticsearch' needs declared columns")
        return _rows(session, options, schema, None)

    def read_all(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType, record: str
    ) -> DataFrame:
        """The declared columns; documents that do not fit have their text in the column `record`."""
        return _rows(session, options, schema, record)


def _rows(
    session: SparkSession, options: Mapping[str, Any], schema: StructType, record: str | None
) -> DataFrame:
    from spark_runner.connectors.elasticsearch.client import Client, pattern_of  # noqa: PLC0415 - imports urllib3

    with Client(options) as client:  # so that an error is clear, before a task meets it
        found = client.ask("GET", f"/{pattern_of(options['index'])}/_search?size=0&filter_path=took")
        client.check(found)
    slices = options["partitions"] or min(session.sparkContext.defaultParallelism, _MAX_SLICES)
    query = json.loads(options["query"]) if options["query"] else None
    fields: Any = True if "decimal(" in schema.simpleString() else schema.fieldNames()  # see PageReader
    secrets = tuple(spellings_within(map(str, options.values())))
    given = {**options, "partitions": slices, "query": query, "fields": fields, "secrets": secrets}
    hits = read_by(Hits, session, given, StructType([StructField("hit", StringType())]))
    unread = record or _UNREAD
    wide = StructType([*_HIT.fields, StructField("_source", schema), StructField(unread, StringType())])
    reading = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": unread}
    row = sql.col("row")
    rows = hits.select("hit", sql.from_json("hit", wide, reading).alias("row"))
    if record is None:
        fine = sql.when(row[_UNREAD].isNull(), row).otherwise(sql.raise_error(_words(schema)))
        rows = rows.select(fine.alias("row"))
    cells = [row["_source"][name].alias(name) for name in schema.fieldNames()]
    more = [] if record is None else [row[record].alias(record)]
    metadata = sql.struct(*[row[name].alias(name) for name in _HIT.fieldNames()])
    return rows.select(*cells, *more, metadata.alias(METADATA))


def _words(schema: StructType) -> Column:
    """What is wrong with a document: its id, and the fields that do not fit."""
    row, wrong = sql.col("row"), []
    for name in schema.fieldNames():
        is_given = sql.get_json_object("hit", f"$._source['{name}']").isNotNull()
        wrong.append(sql.when(row["_source"][name].isNull() & is_given, sql.lit(name)))
    words = "document '%s' of index '%s' does not fit the declared columns: field %s"
    return sql.format_string(words, row["_id"], row["_index"], sql.concat_ws(", ", *wrong))


class Hits(TableSource):
    """Reads documents in the tasks of Spark."""

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - of DataSource
        """The reader of this table."""
        from spark_runner.connectors.elasticsearch.pages import PageReader  # noqa: PLC0415 - imports urllib3

        return PageReader(dict(self.table))
