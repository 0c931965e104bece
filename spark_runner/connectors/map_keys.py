"""Keys of maps in rows as JSON.

Spark writes keys of all types, some as a text that loses their value, and reads texts alone.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

_EPOCH_NTZ = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_KEY = "key"  # the name of a key in the text of one that is no plain value

_OfKey = Callable[[Column, DataType], Column]


def with_readable_keys(value: Column, kind: DataType, as_text: Callable[[Column], Column]) -> Column:
    """A value whose maps have keys that `to_json` writes in full; `as_text` gives a struct as JSON.

    Spark would write the address of a binary key, and a struct without quotes.
    """

    def key(found: Column, of: DataType) -> Column:
        if isinstance(of, BinaryType):
            return sql.base64(found)
        if isinstance(of, ArrayType | StructType):
            return as_text(sql.struct(with_readable_keys(found, of, as_text).alias(_KEY)))
        return found

    return _rebuilt(value, kind, key) if _has_key(kind, _is_unreadable) else value


def with_text_keys(columns: StructType) -> StructType:
    """The columns whose maps have texts as keys, as `from_json` needs them."""
    return StructType(
        [StructField(each.name, _text_keyed(each.dataType), each.nullable, each.metadata) for each in columns]
    )


def _text_keyed(kind: DataType) -> DataType:
    match kind:
        case ArrayType():
            return ArrayType(_text_keyed(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(StringType(), _text_keyed(kind.valueType), kind.valueContainsNull)
        case StructType():
            return with_text_keys(kind)
    return kind


def with_typed_keys(
    value: Column, kind: DataType, as_struct: Callable[[Column, StructType], Column]
) -> Column:
    """The value of the type `kind` from one of `with_text_keys`; `as_struct` reads JSON as a struct."""

    def key(text: Column, of: DataType) -> Column:
        if isinstance(of, ArrayType | StructType):
            one = StructType([StructField(_KEY, of)])
            return as_struct(text, one)[_KEY]
        return _plain_key(text, of)

    return _rebuilt(value, kind, key) if _has_key(kind, _is_no_text) else value


def _plain_key(text: Column, kind: DataType) -> Column:
    """A key from Spark's text: of dates, times and intervals it is a number."""
    number, found = text.cast("bigint"), text
    match kind:
        case BinaryType():
            found = sql.unbase64(text)
        case DateType():
            found = sql.date_from_unix_date(number.cast("int"))
        case TimestampType():
            found = sql.timestamp_micros(number)
        case TimestampNTZType():
            found = sql.timestamp_add("MICROSECOND", number, sql.expr(_EPOCH_NTZ))
        case DayTimeIntervalType():
            found = sql.expr("INTERVAL '0.000001' SECOND") * number
        case YearMonthIntervalType():
            found = sql.make_ym_interval(sql.lit(0), number.cast("int"))
    return found.cast(kind)


def _rebuilt(value: Column, kind: DataType, key: _OfKey) -> Column:
    match kind:
        case ArrayType():
            return sql.transform(value, lambda each: _rebuilt(each, kind.elementType, key))
        case MapType():

            def entry(each: Column) -> Column:
                inner = _rebuilt(each["value"], kind.valueType, key)
                return sql.struct(key(each["key"], kind.keyType).alias("key"), inner.alias("value"))

            return sql.map_from_entries(sql.transform(sql.map_entries(value), entry))
        case StructType():
            cells = [_rebuilt(value[each.name], each.dataType, key).alias(each.name) for each in kind]
            return sql.when(value.isNotNull(), sql.struct(*cells)) if cells else value
    return value


def _has_key(kind: DataType, is_meant: Callable[[DataType], bool]) -> bool:
    match kind:
        case ArrayType():
            return _has_key(kind.elementType, is_meant)
        case MapType():
            return is_meant(kind.keyType) or _has_key(kind.valueType, is_meant)
        case StructType():
            return any(_has_key(each.dataType, is_meant) for each in kind)
    return False


def _is_unreadable(kind: DataType) -> bool:
    return isinstance(kind, BinaryType | ArrayType | StructType)


def _is_no_text(kind: DataType) -> bool:
    return not isinstance(kind, StringType)
