"""The types of Spark that annotations of Python functions mean."""

import datetime as dt
import types
import typing
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

_PLAIN: dict[Any, DataType] = {
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    str: StringType(),
    bytes: BinaryType(),
    Decimal: DecimalType(38, 18),
    dt.date: DateType(),
    dt.datetime: TimestampType(),
}
_KEY_AND_VALUE = 2


def type_of(annotation: Any) -> DataType:
    """The type of the values that an annotation describes; raises TypeError for one without counterpart.

    `Annotated[Decimal, "DECIMAL(10, 2)"]` names the type in SQL.
    """
    if annotation is None:
        message = "the function does not say what it returns"
        raise TypeError(message)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        named = [each for each in arguments[1:] if isinstance(each, str)]
        return named_type(named[0]) if named else type_of(arguments[0])
    if origin in {typing.Union, types.UnionType}:
        others = [each for each in arguments if each is not type(None)]
        if len(others) == 1:
            return type_of(others[0])
    if origin is list and arguments:
        return ArrayType(type_of(arguments[0]))
    if origin is dict and len(arguments) == _KEY_AND_VALUE:
        return MapType(type_of(arguments[0]), type_of(arguments[1]))
    shown = getattr(annotation, "__qualname__", None) or str(annotation)
    message = f"the function returns {shown}, which is no type of Spark"
    raise TypeError(message)


def named_type(text: str) -> DataType:
    """The type that SQL names so; raises the errors of Spark's parser."""
    found = StructType.fromDDL(f"x {text}")
    if not isinstance(found, StructType) or len(found.fields) != 1:
        message = f"'{text}' is not one type"
        raise TypeError(message)
    return found.fields[0].dataType


def is_arrow(annotation: Any) -> bool:
    """Whether an annotation is an array of pyarrow."""
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return isinstance(annotation, type) and annotation.__module__.partition(".")[0] == "pyarrow"
