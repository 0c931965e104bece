"""Rows over HTTP: a source that gets JSON records, and a sink that posts them."""

from spark_runner.connectors.registry import Connector

CONNECTOR = Connector(
    "http_rows.options:HttpOptions", "http_rows.source:HttpSource", "http_rows.sink:HttpSink"
)
