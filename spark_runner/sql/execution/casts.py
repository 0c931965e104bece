"""What may go wrong when values of one type are written into a column of another."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from spark_runner.sql.execution.diagnosis import SPARK_ERRORS

_DIGITS: Mapping[type[DataType], int] = {
    ByteType: 3,
    ShortType: 5,
    IntegerType: 10,
    LongType: 19,
}  # of the largest value
_EXACT_DIGITS: Mapping[type[DataType], int] = {
    FloatType: 7,
    DoubleType: 15,
}  # that an integer may have and stay exact
_TEXTS = (StringType, CharType, VarcharType)  # Spark's cast does not cut to a length
GOES_ASIDE = "sends its row to the quarantine"
_INSTANTS = (TimestampType, TimestampNTZType)


@dataclass(frozen=True)
class Risk:
    """A cast that Spark refuses, or that may fail or lose something for some values."""

    words: str
    is_refused: bool = False


def cast_risk(
    session: SparkSession, given: DataType, declared: DataType, *, tolerant: bool = False
) -> Risk | None:
    """The risk of the cast that an INSERT makes; None if every value stays what it is.

    With `tolerant` the script has a limit for rows that do not fit.
    """
    if given == declared or isinstance(given, NullType):
        return None
    try:
        session.range(0).select(sql.lit(None).cast(given).cast(declared))
    except SPARK_ERRORS:
        return Risk("Spark has no cast between the two", is_refused=True)
    is_ansi = session.conf.get("spark.sql.ansi.enabled", "true") == "true"
    fails = GOES_ASIDE if tolerant else "ends the job" if is_ansi else "becomes NULL"
    found = _words(given, declared, fails)
    return Risk(found) if found else None


def type_name(kind: DataType) -> str:
    """A type as a script writes it."""
    return (
        kind.simpleString().upper()
        if not isinstance(kind, StructType | MapType | ArrayType)
        else kind.simpleString()
    )


def _words(given: DataType, declared: DataType, fails: str) -> str:
    """What may happen to a value; empty if nothing."""
    name = type_name(declared)
    if given == declared or isinstance(given, NullType) or isinstance(declared, _TEXTS):
        found = ""
    elif isinstance(given, StringType):
        found = "" if isinstance(declared, BinaryType) else f"a text that is no {name} {fails}"
    elif isinstance(given, BooleanType) and _is_number(declared):
        found = ""
    elif _is_number(given) and _is_number(declared):
        found = _of_numbers(given, declared, f"a value beyond the range of {name} {fails}")
    elif isinstance(declared, DateType) and isinstance(given, _INSTANTS):
        found = "the time of day is lost"
    elif isinstance(declared, _INSTANTS) and isinstance(given, DateType):
        found = ""
    elif isinstance(declared, _INSTANTS) and isinstance(given, _INSTANTS):
        found = "the meaning depends on the time zone of the session"
    else:
        found = _of_nested(given, declared, fails)
    return found


def _of_nested(given: DataType, declared: DataType, fails: str) -> str:
    if isinstance(given, ArrayType) and isinstance(declared, ArrayType):
        pairs = [(given.elementType, declared.elementType)]
    elif isinstance(given, MapType) and isinstance(declared, MapType):
        pairs = [(given.keyType, declared.keyType), (given.valueType, declared.valueType)]
    elif isinstance(given, StructType) and isinstance(declared, StructType):
        pairs = [(one.dataType, two.dataType) for one, two in zip(given, declared, strict=False)]
    else:
        return f"a value that does not fit may change, or {fails}"
    found = [words for one, two in pairs if (words := _words(one, two, fails))]
    return f"inside it, {found[0]}" if found else ""


def _is_number(kind: DataType) -> bool:
    return type(kind) in _DIGITS or type(kind) in _EXACT_DIGITS or isinstance(kind, DecimalType)


def _of_numbers(given: DataType, declared: DataType, beyond: str) -> str:
    if type(declared) in _EXACT_DIGITS:
        return _to_floating(given, declared)
    if type(given) in _EXACT_DIGITS:
        return f"digits after the point may be lost, and {beyond}"
    digits, scale = _size(given)
    room, room_scale = _size(declared)
    lost = "digits after the point are lost" if scale > room_scale else ""
    # Integers fill the digits of their type only up to its largest value.
    is_exact = type(given) in _DIGITS and type(declared) in _DIGITS
    is_small = digits <= room if is_exact or isinstance(declared, DecimalType) else digits < room
    return ", and ".join(filter(None, (lost, "" if is_small else beyond)))


def _to_floating(given: DataType, declared: DataType) -> str:
    kept = _EXACT_DIGITS[type(declared)]
    if type(given) in _EXACT_DIGITS:
        return "" if kept >= _EXACT_DIGITS[type(given)] else "precision may be lost"
    digits, scale = _size(given)
    return "" if not scale and digits <= kept else "precision may be lost"


def _size(kind: DataType) -> tuple[int, int]:
    """The digits before and after the point."""
    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale, kind.scale
    return _DIGITS[type(kind)], 0


def loses(value: Column, given: DataType, declared: DataType) -> Column:
    """Whether the tolerant cast of a value replaces it, or a value inside of it, with NULL."""
    if isinstance(given, ArrayType) and isinstance(declared, ArrayType):
        return _any(value, given.elementType, declared.elementType)
    if isinstance(given, MapType) and isinstance(declared, MapType):
        keys = _any(sql.map_keys(value), given.keyType, declared.keyType)
        return keys | _any(sql.map_values(value), given.valueType, declared.valueType)
    if isinstance(given, StructType) and isinstance(declared, StructType):
        found = sql.lit(False)
        for its, kind in zip(given.fields, declared.fields, strict=False):  # Spark refuses other numbers
            found |= loses(value.getField(its.name), its.dataType, kind.dataType)
        return found
    return value.isNotNull() & value.try_cast(declared).isNull()


def _any(values: Column, given: DataType, declared: DataType) -> Column:
    found = sql.exists(values, lambda each: loses(each, given, declared))
    return sql.coalesce(found, sql.lit(False))  # NULL for no array
