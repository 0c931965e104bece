"""Documents of Elasticsearch as rows."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.python_source import TableSource, read_by

METADATA = "_metadata"
_UNREAD = "__orchestrator_unread"
_PAGE = "hits STRUCT<hits: ARRAY<STRUCT<_index: STRING, _id: STRING, _version: BIGINT, _source: STRING>>>"
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
    given = {**options, "partitions": slices, "query": query, "fields": schema.fieldNames()}
    pages = read_by(Pages, session, given, StructType([StructField("page", BinaryType())]))
    page = sql.from_json(sql.col("page").cast("string"), _PAGE, {"mode": "FAILFAST"})
    hits = pages.select(sql.inline(page["hits"]["hits"]))
    unread = record or _UNREAD
    wide = StructType([*schema.fields, StructField(unread, StringType())])
    reading = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": unread}
    parsed = sql.from_json("_source", wide, reading)
    rows = hits.select("_index", "_id", "_version", "_source", parsed.alias("row"))
    row = sql.col("row")
    if record is None:
        row = sql.when(row[_UNREAD].isNull(), row).otherwise(sql.raise_error(_words(schema)))
        rows = rows.withColumn("row", row)
    metadata = sql.struct("_id", "_index", "_version").alias(METADATA)
    more = [] if record is None else [sql.col("row")[record].alias(record)]
    return rows.select(*[sql.col("row")[name].alias(name) for name in schema.fieldNames()], *more, metadata)


def _words(schema: StructType) -> Column:
    """What is wrong with a document: its id, and the fields that do not fit."""
    wrong = [
        sql.when(
            sql.col("row")[name].isNull() & sql.get_json_object("_source", f"$['{name}']").isNotNull(),
            sql.lit(name),
        )
        for name in schema.fieldNames()
    ]
    words = "document '%s' of index '%s' does not fit the declared columns: field %s"
    return sql.format_string(words, "_id", "_index", sql.concat_ws(", ", *wrong))


class Pages(TableSource):
    """Reads pages in the tasks of Spark."""

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - of DataSource
        """The reader of this table."""
        from spark_runner.connectors.elasticsearch.pages import PageReader  # noqa: PLC0415 - imports urllib3

        return PageReader(dict(self.table))
