"""The options of rows on standard output."""

from pydantic import Field

from spark_runner.connectors.options import ConnectorOptions


class PrintOptions(ConnectorOptions):
    """Rows on standard output, to inspect a query; in a stream, each micro-batch as it comes."""

    limit: int = Field(20, ge=1, le=10_000, description="rows to show")
