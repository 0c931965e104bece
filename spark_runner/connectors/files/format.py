"""The options of Spark for one file format, which its readers and writers share."""

from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.csv_texts import csv_options

MAX_FILES_PER_TRIGGER = 1000  # of one micro-batch: it bounds what a replay writes again

COLUMNAR = {"parquet", "orc"}  # formats whose files have the types of their columns


def format_options(file_format: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The options of Spark for a table of this format.

    Its readers get no format of times: without one, Spark reads each text of ISO 8601.
    """
    if file_format != "csv":
        return {}
    return {"header": str(options["header"]).lower(), **csv_options(options)}


def names_bucket(options: Mapping[str, Any]) -> bool:
    """Whether a table has the address or login of its bucket: all tables of a JVM would use them."""
    return any(value for name, value in options.items() if name.startswith("s3_"))
