"""How a text of CSV is quoted, in files and in records of topics."""

from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.errors import OptionError

ESCAPE = '"'  # RFC 4180: a quote within quotes is doubled; Spark's own default is a backslash


def csv_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The options of Spark that its readers and writers of CSV share."""
    return {
        "sep": options["delimiter"],
        "nullValue": options["null_value"],
        "escape": options.get("escape", ESCAPE),  # a plan leaves it out at its default
        # Of writes: Spark would cut the spaces at both ends of a text.
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    }


def refuse_ambiguous_escape(escape: str, delimiter: str) -> None:
    """Raise OptionError for an escape that a reader would take for something else."""
    if escape.isalnum() or escape.isspace() or not escape.isprintable() or escape > "\uffff":
        message = f"option 'escape': {escape!r} cannot precede a quote; choose a punctuation mark such as \\"
        raise OptionError(message, option="escape", fault="value", quoted=escape)
    if escape == delimiter:
        message = f"options 'escape' and 'delimiter' are both '{escape}'; choose different characters"
        raise OptionError(message, option="escape", fault="value", quoted=escape)
