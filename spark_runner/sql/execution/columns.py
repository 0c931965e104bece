"""Adds the columns that a declaration has beside the stored ones, and checks its expectations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, SentTexts
from spark_runner.sql.text.literals import quote_name
from spark_runner.sql.text.passage import Passage

METADATA = "_metadata"  # the hidden column of Spark with what it knows of the file of a row
_LONGEST_CONDITION = 200  # in an error message


class DeclaredColumns:
    """The parts of one table of a plan that are more than stored columns."""

    def __init__(
        self,
        step: Mapping[str, Any],
        passage: Callable[[Sequence[Sequence[int]]], Passage],
        sent: SentTexts,
    ) -> None:
        self._step, self._passage, self._sent = step, passage, sent

    def added_to(self, frame: DataFrame) -> DataFrame:
        """The rows with all columns, in the order of the declaration; raises SqlError at an expression."""
        if not (order := self._step.get("order")):
            return frame
        for column in self._step.get("metadata", ()):
            value = sql.col(f"{METADATA}.{column['field']}").cast(self._passage(column["type"]).text)
            frame = frame.withColumn(column["name"], value)
        for column in self._step.get("computed", ()):
            kind = self._passage(column["type"]).text if column["type"] else None
            frame = self._computed(frame, column["name"], self._passage(column["expression"]), kind)
        return frame.select(*[sql.col(quote_name(name)) for name in order])

    def checked(self, frame: DataFrame) -> DataFrame:
        """The same rows; reading one that violates an expectation is an error of Spark."""
        for each in self._step.get("expectations", ()):
            condition = self._passage(each["condition"])
            message = (
                f"a row of table '{self._step['name']}' violates '{each['name']}': "
                f"{' '.join(condition.text.split())[:_LONGEST_CONDITION]}"
            )
            frame = self._filtered(frame, condition, message)
        return frame

    def _computed(self, frame: DataFrame, name: str, expression: Passage, kind: str | None) -> DataFrame:
        try:
            value = sql.expr(self._sent.send(expression))
            return frame.withColumn(name, value if kind is None else value.cast(kind))
        except SPARK_ERRORS as error:
            raise self._sent.located(error, expression) from error

    def _filtered(self, frame: DataFrame, condition: Passage, message: str) -> DataFrame:
        # A filter, because Spark leaves out a column that the query does not use.
        try:
            accepted = sql.expr(self._sent.send(condition))
            return frame.filter(sql.coalesce(accepted, sql.lit(False)) | _failure(message))
        except SPARK_ERRORS as error:
            raise self._sent.located(error, condition) from error


def _failure(message: str) -> Column:
    return sql.raise_error(sql.lit(message)).cast("boolean")
