"""The source and the sink of each connector, in the driver."""

from collections.abc import Mapping

from spark_runner.connectors.base import Sink, Source
from spark_runner.connectors.console import Console
from spark_runner.connectors.files import Files
from spark_runner.connectors.inline import Inline

SOURCES: Mapping[str, Source] = {
    "parquet": Files("parquet"),
    "csv": Files("csv"),
    "json": Files("json"),
    "inline": Inline(),
}
SINKS: Mapping[str, Sink] = {
    "parquet": Files("parquet"),
    "csv": Files("csv"),
    "json": Files("json"),
    "print": Console(),
}
