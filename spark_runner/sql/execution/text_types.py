"""CHAR and VARCHAR in declared columns."""

from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)


def with_strings(kind: DataType) -> DataType:
    """The type with STRING for CHAR(n) and VARCHAR(n), at each depth.

    Spark reads no column of these types, and its casts to them neither cut nor check a text.
    """
    match kind:
        case CharType() | VarcharType():
            return StringType()
        case ArrayType():
            return ArrayType(with_strings(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(with_strings(kind.keyType), with_strings(kind.valueType), kind.valueContainsNull)
        case StructType():
            return schema_with_strings(kind)
    return kind


def schema_with_strings(schema: StructType) -> StructType:
    """The columns likewise."""
    return StructType(
        [
            StructField(each.name, with_strings(each.dataType), each.nullable, each.metadata)
            for each in schema.fields
        ]
    )
