"""What lines of text can hold: one STRING column, and no line breaks in it."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.rows import column


def refuse_columns(schema: StructType, partition_by: Sequence[str]) -> None:
    """Raise ConnectorError unless there is one column besides the partitions, a STRING."""
    partitions = {name.lower() for name in partition_by}
    found = [field for field in schema.fields if field.name.lower() not in partitions]
    if len(found) != 1 or not isinstance(found[0].dataType, StringType):
        given = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in found)
        raise ConnectorError(
            f"refused: a line of text is one STRING, and the query gives ({given}); join its columns, or name"
            " others in partition_by"
        )


def kept_lines(name: str) -> Column:
    """The number of rows that are one line each; to aggregate."""
    return sql.count_if(~column(name).rlike("[\\r\\n]"))
