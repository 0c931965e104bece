"""What is reported of the triggers of a query, also after it has started again."""

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from spark_runner.sql.execution.triggers import Triggers


class Query:
    """A query by the name `q` that reads a topic; its events come as Spark sends them."""

    def __init__(self) -> None:
        self.shown: list[Mapping[str, Any]] = []
        self.triggers = Triggers(lambda _, facts: self.shown.append(facts))
        writer: Any = SimpleNamespace(last_rows=1, rows=1)
        self.triggers.add("q", {"dst": writer}, None)

    def start(self, run: int) -> None:
        self.triggers.onQueryStarted(_event(runId=run, name="q"))

    def idle(self, run: int) -> None:
        self.triggers.onQueryIdle(_event(runId=run, timestamp="now"))

    def batch(self, number: int, end: int, latest: str | None) -> None:
        source = SimpleNamespace(
            description="KafkaV1[Subscribe[t]]",
            startOffset='{"t": {"0": 0}}',
            endOffset=f'{{"t": {{"0": {end}}}}}',
            latestOffset=latest,
        )
        progress = SimpleNamespace(
            name="q",
            batchId=number,
            timestamp="now",
            durationMs={"triggerExecution": 5},
            sources=[source],
            inputRowsPerSecond=1.0,
            numInputRows=1,
        )
        self.triggers.onQueryProgress(_event(progress=progress))


def _event(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


@pytest.fixture
def query() -> Query:
    found = Query()
    found.start(1)
    return found


def test_a_batch_that_was_planned_before_a_restart_has_no_lag_and_an_idle_query_has_none_left(
    query: Query,
) -> None:
    query.batch(1, 5, '{"t": {"0": 9}}')
    assert query.shown[-1]["lag"]["records"] == 4
    query.start(2)
    query.batch(2, 9, None)
    assert "lag" not in query.shown[-1]
    query.idle(2)
    assert query.shown[-1]["lag"] == {"records": 0, "partitions": {}}


def test_an_idle_query_that_has_shown_no_lag_shows_none(query: Query) -> None:
    query.idle(1)
    assert "lag" not in query.shown[-1]


def test_a_late_report_of_an_earlier_start_is_left_out(query: Query) -> None:
    query.start(2)
    query.idle(1)
    assert query.shown == []
    query.idle(2)
    assert query.shown[-1]["triggers"] == 1


def test_the_connection_of_the_thread_of_a_query_is_closed_at_its_end() -> None:
    closed = list[str]()
    connections = [_event(shutdown=partial(closed.append, name)) for name in ("first", "second")]
    triggers = Triggers(lambda *_: None, iter(connections).__next__)
    triggers.onQueryStarted(_event(runId=1, name="q"))
    triggers.onQueryStarted(_event(runId=2, name="q"))
    triggers.onQueryTerminated(_event(runId=1))
    triggers.onQueryTerminated(_event(runId=1))
    assert closed == ["first"]
