"""A connector whose tasks fail with a password in the text of the error, for tests."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.options import ConnectorOptions
from spark_runner.connectors.python_source import TableSource, read_by, write_by
from spark_runner.connectors.registry import BUILT_IN, Connector


class RefusedOptions(ConnectorOptions):
    """`url`: with the password, as some addresses have it."""

    url: str


class Refused(TableSource):
    """A server that refuses everybody."""

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - of DataSource
        return RefusedReader(str(self.table["url"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002 - likewise
        return RefusedWriter(str(self.table["url"]))


class RefusedReader(DataSourceReader):
    """Fails in its task."""

    def __init__(self, url: str) -> None:
        self.url = url

    def read(self, partition: object) -> Iterator[tuple[int]]:  # noqa: ARG002 - of DataSourceReader
        yield (1,)
        raise OSError(f"no connection to {self.url}")


class RefusedWriter(DataSourceWriter):
    """Likewise."""

    def __init__(self, url: str) -> None:
        self.url = url

    def write(self, iterator: object) -> Any:  # noqa: ARG002 - of DataSourceWriter
        raise OSError(f"no connection to {self.url}")


class RefusedConnector:
    """Source and sink."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        assert schema is not None
        return read_by(Refused, session, options, schema)

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave all rows."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:  # noqa: ARG002 - of Sink
        return Written(write_by(Refused, frame, options))


@contextmanager
def refused() -> Iterator[None]:
    """The connector under the name `refused`."""
    own = f"{__name__}:RefusedConnector"
    with patch.dict(BUILT_IN, refused=Connector(f"{__name__}:RefusedOptions", own, own)):
        yield
