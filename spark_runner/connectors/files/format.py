"""The options of Spark for one file format, which its readers and writers share."""

from collections.abc import Mapping
from typing import Any

MAX_FILES_PER_TRIGGER = 1000  # of one micro-batch: it bounds what a replay writes again

COLUMNAR = {"parquet", "orc"}  # formats whose files have the types of their columns


def format_options(file_format: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The options of Spark for a table of this format."""
    if file_format != "csv":
        return {}
    return {
        "header": str(options["header"]).lower(),
        "sep": options["delimiter"],
        "nullValue": options["null_value"],
    }
