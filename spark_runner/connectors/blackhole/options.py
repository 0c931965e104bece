"""The options of rows that are counted and dropped."""

from spark_runner.connectors.options import ConnectorOptions


class BlackholeOptions(ConnectorOptions):
    """Rows are computed, counted and dropped, to measure a query without its target."""
