"""The types by which JSON is read: Spark takes the numbers up to 255 for a TINYINT, and makes -56 of 200."""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, ByteType, DataType, MapType, ShortType, StructField, StructType

_LOWEST, _HIGHEST = -128, 127  # of a TINYINT


def read_as(kind: DataType) -> DataType:
    """The type by which to read a value: a SMALLINT instead of each TINYINT in it."""
    match kind:
        case ByteType():
            return ShortType()
        case ArrayType():
            return ArrayType(read_as(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(kind.keyType, read_as(kind.valueType), kind.valueContainsNull)
        case StructType():
            return columns_read_as(kind)
    return kind


def columns_read_as(columns: StructType) -> StructType:
    """The columns with the types by which to read them."""
    return StructType(
        [StructField(each.name, read_as(each.dataType), each.nullable, each.metadata) for each in columns]
    )


def fits(value: Column, kind: DataType) -> Column:
    """Whether what was read by `read_as` is a value of the type `kind`; never NULL."""
    if read_as(kind) == kind:
        return sql.lit(True)
    match kind:
        case ArrayType():
            return sql.coalesce(sql.forall(value, lambda each: fits(each, kind.elementType)), sql.lit(True))
        case MapType():
            return fits(sql.map_values(value), ArrayType(kind.valueType))
        case StructType():
            return reduce(Column.__and__, [fits(value[each.name], each.dataType) for each in kind])
    return value.isNull() | value.between(_LOWEST, _HIGHEST)


def typed(value: Column, kind: DataType) -> Column:
    """What was read by `read_as`, as the type `kind`; a number that does not fit is NULL."""
    return value if read_as(kind) == kind else value.try_cast(kind)
