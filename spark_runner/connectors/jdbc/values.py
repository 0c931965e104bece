"""Values of a database as values of declared columns."""

import re
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "integer", "bigint"})


def base_type(kind: str) -> str:
    """The name of a type of a database without its size and its attributes."""
    return re.split(r"[ (]", kind, maxsplit=1)[0].lower()


def read_as(value: Column, kind: DataType, wanted: StructField) -> Column:
    """A value of the type `kind` as one of a declared column; a text is JSON for STRUCT, MAP and ARRAY."""
    if kind == wanted.dataType:
        return value
    if isinstance(kind, StringType) and isinstance(wanted.dataType, StructType | MapType | ArrayType):
        found: Any = wanted.dataType  # it takes a map, too
        return sql.from_json(value, found, {"mode": "FAILFAST"})
    return value.cast(wanted.dataType)
