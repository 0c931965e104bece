"""The keys of a table, which the option `key` describes as a text with columns, or as a pattern."""

import re

from pyspark.sql import Column
from pyspark.sql import functions as sql

from spark_runner.connectors.templates import pieces


def pattern_of(template: str) -> str:
    """The pattern of SCAN for the keys that a template makes; one without columns is a pattern itself."""
    found = pieces(template)
    if not any(piece.is_column for piece in found):
        return "".join(piece.text for piece in found)
    return "".join("*" if each.is_column else re.sub(r"([\[\]*?^\\-])", r"\\\1", each.text) for each in found)


def columns_of_key(template: str, key: Column) -> dict[str, Column]:
    """The columns that a template has put into the text of a key, by their names in lower case."""
    found = pieces(template)
    names = [each.text.lower() for each in found if each.is_column]
    text = "".join("(.*)" if each.is_column else re.escape(each.text) for each in found)
    return {name: sql.regexp_extract(key, rf"(?s)\A{text}\z", index) for index, name in enumerate(names, 1)}
