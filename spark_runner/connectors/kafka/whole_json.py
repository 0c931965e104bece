"""An object from a text of JSON that is nothing else: Spark's own reader stops behind the first object."""

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from spark_runner.connectors.json_types import columns_read_as, fits, typed

_OBJECT, _IS_CLOSED, _UNREAD = "o", "c", "u"  # short, since each text gets the first two


def whole_json(text: Column, schema: StructType) -> Column:
    """What Spark reads of a text, for `object_of` and `is_whole`; its types are of `columns_read_as`."""
    around = StructType(
        [
            StructField(_OBJECT, columns_read_as(schema)),
            StructField(_IS_CLOSED, BooleanType()),
            StructField(_UNREAD, StringType()),
        ]
    )
    # Spark has to read on behind the object, to the field that follows it.
    whole = sql.concat(sql.lit(f'{{"{_OBJECT}":'), text, sql.lit(f',"{_IS_CLOSED}":true}}'))
    return sql.from_json(whole, around, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREAD})


def object_of(read: Column) -> Column:
    """The object as a struct; of a text that is no such object it may be a part, or NULL."""
    return read[_OBJECT]


def is_whole(read: Column, schema: StructType) -> Column:
    """Whether the text is one object with values of the types of the schema; never NULL."""
    found = read[_OBJECT]
    is_read = read[_IS_CLOSED] & found.isNotNull() & read[_UNREAD].isNull() & fits(found, schema)
    return sql.coalesce(is_read, sql.lit(False))


def from_whole_json(text: Column, schema: StructType, unread: str) -> Column:
    """The columns as a struct with a further one, `unread`: a text that is no such object, or NULL.

    It is NULL for a text that is NULL.
    """

    def found(read: Column) -> Column:
        cells = [typed(read[_OBJECT][each.name], each.dataType).alias(each.name) for each in schema]
        return sql.struct(*cells, sql.when(~is_whole(read, schema), text).alias(unread))

    # A function has a name for the reading, which Spark would repeat for each use of it in an expression.
    checked = sql.transform(sql.array(whole_json(text, schema)), found)[0]
    if columns_read_as(schema) != schema:
        return checked
    # The check takes half as long again as the reading: it is for texts that may be something else.
    wide = StructType([*schema.fields, StructField(unread, StringType())])
    plain = sql.from_json(text, wide, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": unread})
    return sql.when(_may_have_two_braces(text), checked).otherwise(plain)


def _may_have_two_braces(text: Column) -> Column:
    """Whether something follows the first closing brace: a text without it is one object or none at all."""
    data, brace = text.cast("binary"), sql.lit(b"}")  # Spark finds a byte much faster than a character
    before_last = sql.substring(data, 1, sql.octet_length(data) - 1)
    return ~sql.endswith(data, brace) | sql.contains(before_last, brace)
