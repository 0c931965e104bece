"""Adds the columns that a declaration has beside the stored ones, and checks its expectations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, SentTexts, reason
from spark_runner.sql.execution.judgement import (
    DROPPED,
    QUARANTINED,
    Rule,
    has_rules,
    judged,
    kept_columns,
    visible,
    with_given_text,
)
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
        *,
        has_metadata: bool = True,
    ) -> None:
        self._step, self._passage, self._sent, self._has_metadata = step, passage, sent, has_metadata

    def added_to(self, frame: DataFrame) -> DataFrame:
        """The rows with all columns, in the order of the declaration; raises SqlError at an expression."""
        if not (order := self._step.get("order")):
            return frame
        for column in self._step.get("metadata", ()):
            frame = self._with_metadata(frame, column["name"], column["field"], self._passage(column["type"]))
        return self._with_computed(frame).select(*kept_columns(frame, order))

    def judged(self, frame: DataFrame) -> DataFrame:
        """The rows, with a verdict on each if some may leave the table."""
        ignored = self._step["options"].get("ignore_parse_errors")
        return judged(frame, self._rules(), unread=DROPPED if ignored else QUARANTINED)

    def judged_before_write(self, frame: DataFrame) -> DataFrame:
        """The rows of stored columns alone, likewise."""
        if not self._step.get("expectations"):
            return with_given_text(judged(frame, ()))
        found = judged(self._with_computed(frame), self._rules())
        return with_given_text(found.select(*kept_columns(found, visible(frame))))

    def checked_before_write(self, frame: DataFrame) -> DataFrame:
        """The same rows of stored columns alone; computing one that violates an expectation fails."""
        if not self._step.get("expectations"):
            return frame
        stored = [sql.col(quote_name(name)) for name in frame.columns]
        return self.checked(self._with_computed(frame)).select(*stored)

    def checked(self, frame: DataFrame) -> DataFrame:
        """The same rows; computing one that violates an expectation is an error of Spark."""
        for each in self._step.get("expectations", ()):
            if each.get("action", "fail") == "fail":
                condition = self._passage(each["condition"])
                message = f"a row of table '{self._step['name']}' {_violates(each['name'], condition)}"
                frame = self._filtered(frame, condition, message)
        return frame

    def _rules(self) -> Iterator[Rule]:
        if not has_rules(self._step):
            return
        for each in self._step["expectations"]:
            action = each.get("action", "fail")
            condition = self._passage(each["condition"])
            try:
                holds = sql.expr(self._sent.send(condition))
            except SPARK_ERRORS as error:
                raise self._sent.located(error, condition) from error
            yield Rule(each["name"], holds, action, _violates(each["name"], condition))

    def _with_metadata(self, frame: DataFrame, name: str, field: str, kind: Passage) -> DataFrame:
        value = sql.col(f"{METADATA}.{field}") if self._has_metadata else sql.lit(None)
        try:
            return frame.withColumn(name, value.cast(kind.text.strip()))
        except SPARK_ERRORS as error:
            raise kind.error(reason(error)) from error

    def _with_computed(self, frame: DataFrame) -> DataFrame:
        for column in self._step.get("computed", ()):
            kind = self._passage(column["type"]).text if column["type"] else None
            frame = self._computed(frame, column["name"], self._passage(column["expression"]), kind)
        return frame

    def _computed(self, frame: DataFrame, name: str, expression: Passage, kind: str | None) -> DataFrame:
        try:
            value = sql.expr(self._sent.send(expression))
            return frame.withColumn(name, value if kind is None else value.cast(kind))
        except SPARK_ERRORS as error:
            raise self._sent.located(error, expression) from error

    def _filtered(self, frame: DataFrame, condition: Passage, message: str) -> DataFrame:
        # A filter, because Spark leaves out a column that the query does not use. It names the partition,
        # because Spark evaluates the filters of the query before one that is deterministic.
        in_any_partition = sql.spark_partition_id() >= 0
        try:
            accepted = sql.coalesce(sql.expr(self._sent.send(condition)), sql.lit(False))
            return frame.filter(sql.when(accepted, in_any_partition).otherwise(_failure(message)))
        except SPARK_ERRORS as error:
            raise self._sent.located(error, condition) from error


def _violates(name: str, condition: Passage) -> str:
    return f"violates '{name}': {' '.join(condition.text.split())[:_LONGEST_CONDITION]}"


def _failure(message: str) -> Column:
    return sql.raise_error(sql.lit(message)).cast("boolean")
