"""The options of Spark for one file format, which its readers and writers share."""

from collections.abc import Mapping
from typing import Any

MAX_FILES_PER_TRIGGER = 1000  # of one micro-batch: it bounds what a replay writes again

COLUMNAR = {"parquet", "orc"}  # formats whose files have the types of their columns


def format_options(file_format: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The options of Spark for a table of this format.

    Its readers get no format of times: without one, Spark reads each text of ISO 8601.
    """
    if file_format != "csv":
        return {}
    return {
        "header": str(options["header"]).lower(),
        "sep": options["delimiter"],
        "nullValue": options["null_value"],
        # Of writes: Spark would cut the spaces at both ends of a text.
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    }


def names_bucket(options: Mapping[str, Any]) -> bool:
    """Whether a table has the address or login of its bucket: all tables of a JVM would use them."""
    return any(value for name, value in options.items() if name.startswith("s3_"))
