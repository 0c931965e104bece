"""Gives the rows of a query the columns that their target declares."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, NullType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.execution.casts import loses
from spark_runner.sql.execution.judgement import CAST, GIVEN


def fit(
    frame: DataFrame,
    schema: StructType,
    *,
    by_name: bool,
    tolerant: bool = False,
    keeps_given: bool = False,
) -> DataFrame:
    """The frame with names, order and types of `schema`, matched by position or by name.

    With `tolerant` a value that its column cannot hold is no error: the column CAST names that column. With
    `keeps_given` the column GIVEN has the row as it was. Raises ConnectorError if the columns do not match
    one to one.
    """
    fields = schema.fields
    if by_name:
        order = _by_name(frame.columns, schema.fieldNames())
    else:
        if len(frame.columns) != len(fields):
            raise ConnectorError(
                f"the query has {len(frame.columns)} columns ({', '.join(frame.columns)}),"
                f" the table declares {len(fields)} ({', '.join(schema.fieldNames())})"
            )
        order = list(range(len(fields)))
    # Positions, not names: two columns of a query may have the same name.
    positional = frame.toDF(*[f"c{index}" for index in range(len(frame.columns))])
    cells = list(zip(order, fields, strict=True))
    kinds = [field.dataType for field in frame.schema]
    given = [_given(f"c{index}", kinds[index], field) for index, field in cells]
    kept = [sql.struct(*given).alias(GIVEN)] if keeps_given else []
    if not tolerant:
        return positional.select(*[_cell(sql.col(f"c{index}"), field) for index, field in cells], *kept)
    values, misfits = list[Column](), list[Column]()
    for index, field in cells:
        cell = sql.col(f"c{index}")
        value = cell.try_cast(field.dataType)
        is_lost = loses(cell, kinds[index], field.dataType)
        if not field.nullable:
            is_lost |= value.isNull()
        misfits.append(sql.when(is_lost, sql.lit(field.name)))
        values.append(value.alias(field.name))
    return positional.select(*values, sql.coalesce(*misfits).alias(CAST), *kept)


def _given(name: str, kind: DataType, field: StructField) -> Column:
    """A value of the query under the name of its column in the table."""
    value = sql.col(name)
    # Text has no form for values of a type that has no values.
    return (value.cast("string") if isinstance(kind, NullType) else value).alias(field.name)


def _cell(column: Column, field: StructField) -> Column:
    cell = column.cast(field.dataType)
    if not field.nullable:
        problem = sql.raise_error(sql.lit(f"column '{field.name}' is NOT NULL, and the query gave NULL"))
        cell = sql.when(cell.isNull(), problem).otherwise(cell)
    return cell.alias(field.name)


def _by_name(found: list[str], declared: list[str]) -> list[int]:
    """For each declared name the index in `found`; names are compared without case, as Spark does."""
    lower = [name.lower() for name in found]
    for name in declared:
        if lower.count(name.lower()) > 1:
            raise ConnectorError(f"the query has column '{name}' more than once")
        if name.lower() not in lower:
            raise ConnectorError(f"the query has no column '{name}'{did_you_mean(name, found)}")
    known = {name.lower() for name in declared}
    for name in found:
        if name.lower() not in known:
            raise ConnectorError(f"the table declares no column '{name}'{did_you_mean(name, declared)}")
    return [lower.index(name.lower()) for name in declared]
