"""Rows of JSON files with a number that a TINYINT cannot hold: Spark would make another number of it."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.json_types import columns_read_as, fits, read_as, typed
from spark_runner.connectors.rows import column, struct_as_json


def as_declared(
    frame: DataFrame, columns: StructType, record: str | None, text: Column | None = None
) -> DataFrame:
    """The rows, read by `columns_read_as`, with the declared types.

    A number that does not fit fails the job; with the column `record`, it is NULL, and `record` has the
    `text` of the row. Spark keeps the text of records that it cannot decode alone: without `text`, it is made
    of the declared columns.
    """
    tiny = [each for each in columns if read_as(each.dataType) != each.dataType]
    if not tiny:
        return frame
    values = dict[str, Column]()
    if record is not None:
        row = sql.struct(*[column(name) for name in columns.names])
        fit = reduce(Column.__and__, [fits(column(each.name), each.dataType) for each in tiny])
        written = struct_as_json(row, columns_read_as(columns)) if text is None else text
        values[record] = sql.coalesce(column(record), sql.when(~fit, written))
    for each in tiny:
        value, kind = column(each.name), each.dataType
        if record is None:
            words = f"a record does not fit column '{each.name}': a TINYINT is between -128 and 127"
            problem = sql.raise_error(sql.lit(words)).cast(kind)
            values[each.name] = sql.when(fits(value, kind), typed(value, kind)).otherwise(problem)
        else:
            values[each.name] = typed(value, kind)
    return frame.withColumns(values)
