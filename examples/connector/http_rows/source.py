"""Reads a list of JSON records; an executor sends the request."""

import json
from urllib.request import urlopen

from pyspark.sql.datasource import DataSourceReader

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.python_source import TableSource, read_by


class HttpSource:
    """The records of one address as rows of the declared columns."""

    def read(self, session, options, schema):
        if schema is None:
            raise ConnectorError("a table of connector 'records' needs declared columns")
        return read_by(Records, session, options, schema)


class Records(TableSource):
    def reader(self, schema):
        return RecordReader(self.table["url"], schema)


class RecordReader(DataSourceReader):
    def __init__(self, url, schema):
        self.url, self.schema = url, schema

    def read(self, partition):
        with urlopen(self.url, timeout=60) as answer:
            records = json.load(answer)
        names = self.schema.fieldNames()
        yield from (tuple(record.get(name) for name in names) for record in records)
