"""Rows in the script itself, as a source."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, StructType

from spark_runner.connectors.errors import ConnectorError


class InlineSource:
    """Rows given as JSON."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The rows, each value read as the type that its column declares."""
        if schema is None:
            raise ConnectorError("a table of connector 'inline' needs declared columns")
        objects = [dict(zip(schema.fieldNames(), row, strict=True)) for row in json.loads(options["rows"])]
        text = session.createDataFrame([(json.dumps(objects),)], "rows STRING")
        parsed = sql.from_json("rows", ArrayType(schema), {"mode": "FAILFAST"})
        # Collected here, so that a value of the wrong type is an error of this table, not of a later query.
        return session.createDataFrame(text.select(sql.inline(parsed)).collect(), schema)
