"""A query that goes on with another limit: when it does, and when it ends instead."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from spark_runner.connectors.errors import OptionError
from spark_runner.push.adjustment import Adjustment
from spark_runner.sql.batch_limits.limit_law import Target
from spark_runner.sql.batch_limits.tuner import LimitTuner, Tuning
from spark_runner.sql.execution.stream_limits import ChangingLimit
from spark_runner.sql.execution.stream_query import StreamQuery

PIN = Adjustment(batch_rows=7)


def anything(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


class Spark:
    """The queries of Spark that were started: each is between two triggers."""

    def __init__(self) -> None:
        self.frame = anything()
        self.started: list[Any] = []
        self.kept: list[int] = []
        self.error: Exception | None = None
        tuner = LimitTuner(Tuning(False, Target(10.0, 10, 1000)), 100, None, Adjustment())
        limit = ChangingLimit(tuner, self.rows, self.kept.append)
        insert = anything(step={}, writer=anything(write=lambda *_: None))
        self.query = StreamQuery([insert], self.batch, lambda *_: None, self.start, limit)
        self.query.begin(self.frame)
        self.query.batches.write(self.frame, 0)

    def batch(self, frame: Any) -> Any:
        return nullcontext(lambda _: frame)

    def rows(self, _: int) -> Any:
        if self.error:
            raise self.error
        return self.frame

    def start(self, *_: Any) -> Any:
        found = anything(
            isActive=True, status={"isTriggerActive": False}, stop=lambda: None, exception=lambda: None
        )
        self.started.append(found)
        return found


@pytest.fixture
def spark() -> Spark:
    return Spark()


def test_a_query_goes_on_with_the_limit_that_an_operator_has_set(spark: Spark) -> None:
    spark.query.look(PIN)
    spark.query.look(PIN)
    assert (len(spark.started), spark.kept, spark.query.failure) == (2, [7], None)


def test_a_query_that_fails_while_it_is_stopped_does_not_go_on(spark: Spark) -> None:
    """Its last micro-batch may be written and not counted: only a start of the job looks for its rows."""
    spark.query.look(PIN)
    failure = RuntimeError("no space for the commit")
    spark.started[0].exception = lambda: failure
    spark.query.look(PIN)
    assert (len(spark.started), spark.query.query, spark.query.failure) == (1, None, failure)


def test_a_query_that_is_asked_to_end_while_its_limit_changes_ends(spark: Spark) -> None:
    spark.query.look(PIN)
    spark.query.end()
    spark.query.look(PIN)
    assert (len(spark.started), spark.query.query, spark.query.failure) == (1, None, None)


def test_no_error_of_this_program_about_the_rows_with_another_limit_ends_a_query(spark: Spark) -> None:
    spark.error = OptionError("the topic is gone")
    for _ in range(3):
        spark.query.look(PIN)
    assert (len(spark.started), spark.kept, spark.query.failure) == (1, [], None)
    assert spark.query.query is not None
