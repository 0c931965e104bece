"""An object from a text of JSON that is nothing else: Spark's own reader stops behind the first object."""

import secrets

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from spark_runner.connectors.json_types import columns_read_as, fits, typed
from spark_runner.connectors.rows import column

_OBJECT, _UNREAD = "o", "u"
# The name of a field that no text has, so that none can close what is put around it.
_END = secrets.token_hex(8)
_ENDS = StructField(_END, BooleanType())


def whole_json(text: Column, schema: StructType) -> Column:
    """What Spark reads of a text, for `object_of` and `is_whole`; its types are of `columns_read_as`."""
    objects = ArrayType(StructType([*columns_read_as(schema), _ENDS]))
    around = StructType([StructField(_OBJECT, objects), StructField(_UNREAD, StringType())])
    read = sql.concat(sql.lit(f'{{"{_OBJECT}":'), _and_end(text), sql.lit("}"))
    return sql.from_json(read, around, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREAD})


def object_of(read: Column) -> Column:
    """The object as a struct; of a text that is no such object it may be a part, or NULL."""
    return _first(read).dropFields(_END)


def is_whole(read: Column, schema: StructType) -> Column:
    """Whether the text is one object with values of the types of the schema; never NULL."""
    found = _first(read)
    is_read = _has_end(read[_OBJECT]) & found.isNotNull() & read[_UNREAD].isNull() & fits(found, schema)
    return sql.coalesce(is_read, sql.lit(False))


def with_whole_json(frame: DataFrame, into: str, text: Column, schema: StructType, unread: str) -> DataFrame:
    """The frame with the columns of each text as the struct `into`, which is NULL for NULL.

    It has one more column, `unread`: a text that is no object with these columns, or NULL.
    """
    wide = StructType([*columns_read_as(schema), StructField(unread, StringType())])
    permissive = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": unread}
    # A projection of its own reads the text: Spark would read it again for each use in an expression.
    frame, read = frame.withColumn(into, sql.from_json(text, wide, permissive)), column(into)
    is_object = read.isNotNull() & read[unread].isNull() & fits(read, schema)
    is_object &= ~_may_have_two_braces(text) | _is_one_value(text)
    cells = [typed(read[each.name], each.dataType).alias(each.name) for each in schema]
    refused = sql.when(text.isNotNull(), sql.struct(*cells, text.alias(unread)))
    found = read if columns_read_as(schema) == schema else sql.struct(*cells, read[unread].alias(unread))
    return frame.withColumn(into, sql.when(is_object, found).otherwise(refused))


def _may_have_two_braces(text: Column) -> Column:
    """Whether something follows the first closing brace: a text without it is one object or none at all."""
    data, brace = text.cast("binary"), sql.lit(b"}")  # Spark finds a byte much faster than a character
    before_last = sql.substring(data, 1, sql.octet_length(data) - 1)
    return ~sql.endswith(data, brace) | sql.contains(before_last, brace)


def _is_one_value(text: Column) -> Column:
    """Whether a text that begins with an object ends with it; never NULL."""
    return sql.coalesce(
        _has_end(sql.from_json(_and_end(text), ArrayType(StructType([_ENDS])))), sql.lit(False)
    )


def _first(read: Column) -> Column:
    return sql.get(read[_OBJECT], sql.lit(0))


def _and_end(text: Column) -> Column:
    """An array of the text and of an object with the field _END: Spark has to read on behind the text."""
    return sql.concat(sql.lit("["), text, sql.lit(f',{{"{_END}":true}}]'))


def _has_end(objects: Column) -> Column:
    """Whether the second object is that with the field _END, so that the text is one value."""
    return sql.get(objects, sql.lit(1))[_END]
