"""Reads the rows of a quarantine again, as the query of an INSERT gave them."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.rows import struct_from_json
from spark_runner.sql.execution.judgement import ROW
from spark_runner.sql.execution.replayed_rows import rows_of_run
from spark_runner.sql.text.literals import quote_name

_VALUE = "__orchestrator_value"


def given_rows(
    session: SparkSession, facts: Mapping[str, Any], declared: StructType | None
) -> list[DataFrame]:
    """The rows that an INSERT has set aside: one frame for those with the same types.

    `declared` are the columns of its table. Raises ConnectorError for rows that cannot be written again, or
    that are not all there.
    """
    kept = rows_of_run(session, facts, ("record", "form", "types"))
    if number := kept.filter((sql.col("form") != ROW) | sql.col("types").isNull()).count():
        raise ConnectorError(
            f"its connector has kept {number:,} rejected rows without their columns, so that a replay cannot"
            " write them again; run the whole job again instead"
        )
    kinds = sorted(row["types"] for row in kept.select("types").distinct().collect())
    return [_decoded(kept.filter(sql.col("types") == kind), kind, declared) for kind in kinds]


def _decoded(kept: DataFrame, types: str, declared: StructType | None) -> DataFrame:
    given = StructType.fromDDL(types)
    if not isinstance(given, StructType):
        raise ConnectorError(f"the quarantine has rows of the types '{types}', which are no columns")
    if declared is not None:
        _check_names(given.fieldNames(), declared.fieldNames())
    # A row that fails here was changed in the quarantine: it fails the job.
    value = struct_from_json(sql.col("record"), given)
    cells = [sql.col(f"{_VALUE}.{quote_name(name)}") for name in given.fieldNames()]
    return kept.select(value.alias(_VALUE)).select(*cells)


def _check_names(given: list[str], declared: list[str]) -> None:
    if sorted(map(str.lower, given)) != sorted(map(str.lower, declared)):
        raise ConnectorError(
            f"the rows of the quarantine have the columns {', '.join(given)}, and the table declares"
            f" {', '.join(declared)}; a replay needs the same names"
        )
