# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Rows that clients fetch from a task of Spark."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.options import to_plan, validate
from spark_runner.connectors.poll.sink import PollSink
from spark_runner.push.adjustment import Adjustment
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.poll_support import TOKEN, Client, numbers
from tests.stream_driver import plan_of
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

WAIT_S = 120
"""A Python worker of Spark may start slowly."""

Rows = list[dict[str, Any]]


class Running:
    """A script that runs in a thread, as its driver sees it."""

    def __init__(self, result: "Future[Rows]", control: StreamControl) -> None:
        self.result, self.control = result, control

    def push(self) -> dict[str, Any]:
        return dict(self.control.pushes.document().get("outbox", {}))

    def client(self) -> Client:
        return Client(wait_until(self.address, WAIT_S, "its address is known"))

    def address(self) -> Any:
        """The address at which rows are served; None before. Raises the error of the script."""
        return self.result.result() if self.result.done() else self.push().get("address")


def table(options: str = "", columns: str = "") -> str:
    return f"CREATE TABLE outbox {columns} USING poll OPTIONS (token '{TOKEN}'{options and ', '}{options});\n"


@contextmanager
def running(spark: SparkSession, text: str, folder: Path, attempt: int = 1) -> Iterator[Running]:
    control = StreamControl()
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(
            execute, spark, plan_of(text, folder), lambda _: None, Writer("run", attempt), control=control
        )
        try:
            yield Running(result, control)
        finally:
            control.pushes.dismiss()  # after a failure of the test, no client fetches what is left
            result.exception(WAIT_S)


def test_a_client_fetches_the_rows_of_an_insert_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    text = table("order_by 'n'") + (
        "INSERT INTO outbox SELECT id AS n, CAST(id AS DECIMAL(9, 2)) AS amount,"
        " NULLIF(CONCAT('é\"', id), 'é\"3') AS row, TIMESTAMP'2026-01-02 03:04:05.678901' AS at,"
        " ARRAY(id, NULL) AS list FROM range(2500, 0, -1, 5)"
    )
    with running(spark, text, tmp_path) as run:
        client = run.client()
        found = client.all_rows(limit=700)
        assert numbers(found) == [*range(1, 2501)]
        assert found[0]["list"] == [1, None]
        assert (found[0]["amount"], found[0]["row"], found[2]["row"]) == (1.0, 'é"1', None)
        assert found[0]["at"].startswith("2026-01-02T03:04:05.678901")
        (result,) = run.result.result(WAIT_S)
        assert (result["rows"], result["location"]) == (2500, "")
        push = run.push()
        assert (push["delivered"], push["buffered"], push["tasks"]) == (2500, 0, 0)
        assert "address" not in push, "no task serves any more"


def test_a_client_that_never_acknowledges_stops_the_source_and_an_operator_steers_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = table("buffer_records '100'") + "INSERT INTO outbox SELECT id AS n FROM range(100000)"
    with running(spark, text, tmp_path) as run:
        client, pushes = run.client(), run.control.pushes
        wait_until(lambda: run.push()["read"] == 100, WAIT_S, "the buffer is full")
        assert all(len(client.ask().rows) == 100 for _ in range(5))
        push = wait_until(lambda: (found := run.push())["requests"] == 5 and found, WAIT_S, "it is known")
        assert (push["read"], push["buffered"], push["delivered"]) == (100, 100, 0)
        assert push["stopped"] == 1
        pushes.adjust(Adjustment(buffer=300))
        wait_until(lambda: run.push()["read"] == 300, WAIT_S, "there is room for more")
        pushes.adjust(Adjustment(is_suspended=True))
        wait_until(lambda: not client.ask().rows, WAIT_S, "nothing is served")
        pushes.adjust(Adjustment(buffer=100_000))
        assert sorted(numbers(client.all_rows(limit=100_000))) == [*range(100_000)]


def test_rows_of_a_megabyte_fill_the_buffer_by_their_bytes(spark: SparkSession, tmp_path: Path) -> None:
    text = table("buffer_bytes '4000000'") + (
        "INSERT INTO outbox SELECT id AS n, REPEAT('x', 1000000) AS text FROM range(30)"
    )
    with running(spark, text, tmp_path) as run:
        client = run.client()
        wait_until(lambda: run.push()["buffered"] == 3, WAIT_S, "the buffer is full")
        assert run.push()["stopped"] == 1
        assert numbers(client.all_rows()) == [*range(30)]


def test_an_attempt_without_a_client_is_unreachable_and_the_next_one_serves_all_rows_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = table("client_timeout '1', order_by 'n'") + "INSERT INTO outbox SELECT id AS n FROM range(20)"
    with running(spark, text, tmp_path) as run:
        client = run.client()
        first = wait_until(lambda: (found := client.ask(limit=5)).rows and found, WAIT_S, "rows")
        assert numbers(client.ask(after=first.next, limit=5).rows) == [5, 6, 7, 8, 9]
        with pytest.raises(SqlError, match="no client has acknowledged a row for 1 s") as caught:
            run.result.result(WAIT_S)
        assert type(caught.value.__cause__).__name__ == "Unreachable"
    text = table("order_by 'n'") + "INSERT INTO outbox SELECT id AS n FROM range(20)"
    with running(spark, text, tmp_path, attempt=2) as run:
        client = run.client()
        reply = client.ask(after=first.next)
        assert (reply.status, reply.error) == (410, "cursor_gone")
        assert numbers(client.all_rows()) == [*range(20)]
        assert run.result.result(WAIT_S)[0]["rows"] == 20


def test_a_query_that_fails_is_an_error_for_clients_that_wait(spark: SparkSession, tmp_path: Path) -> None:
    # Large rows: Spark cannot send the one that fails before a client has made room for it.
    text = table("buffer_records '10'") + (
        "INSERT INTO outbox SELECT IF(id = 295, raise_error('of the query'), id) AS n,"
        " REPEAT('x', 100000) AS text"
        " FROM range(0, 300, 1, 1)"
    )
    text = f"SET spark.sql.execution.arrow.maxRecordsPerBatch = 10;\n{text}"
    with running(spark, text, tmp_path) as run:
        client = run.client()
        reply = client.ask(wait=30)
        while reply.status == 200:
            assert not reply.document["end"]
            reply = client.ask(wait=30, after=reply.next)
        assert (reply.status, reply.error) == (500, "failed")
        assert "of the query" not in str(reply.document)
        with pytest.raises(SqlError, match="of the query"):
            run.result.result(WAIT_S)


def test_a_result_without_rows_has_an_end_too(spark: SparkSession, tmp_path: Path) -> None:
    text = table() + "INSERT INTO outbox SELECT id AS n FROM range(0)"
    with running(spark, text, tmp_path) as run:
        assert run.client().ask(wait=30).document["end"] is True
        assert run.result.result(WAIT_S)[0]["rows"] == 0


def test_rows_of_partitions_with_preferred_places_are_served_all(spark: SparkSession, tmp_path: Path) -> None:
    text = table() + (
        "CREATE VIEW v AS SELECT id AS n FROM range(0, 1000, 1, 4); CACHE TABLE v; SELECT COUNT(*) FROM v;"
        "INSERT INTO outbox SELECT n FROM v"
    )
    with running(spark, text, tmp_path) as run:
        assert sorted(numbers(run.client().all_rows())) == [*range(1000)]
        assert run.result.result(WAIT_S)[0]["rows"] == 1000


def test_each_insert_is_served_on_its_own(spark: SparkSession, tmp_path: Path) -> None:
    text = table() + "INSERT INTO outbox SELECT 1 AS n; INSERT INTO outbox SELECT 2 AS n;"
    with running(spark, text, tmp_path) as run:
        first = run.client()
        assert numbers(first.all_rows()) == [1]
        url = wait_until(
            lambda: (found := run.push().get("address")) != first.url and found, WAIT_S, "the next address"
        )
        assert numbers(Client(str(url)).all_rows()) == [2]
        assert [each["rows"] for each in run.result.result(WAIT_S)] == [1, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"token": "short"}, "the token of clients must have 16 to 4096 printable ASCII characters"),
        ({"token": TOKEN, "ssl_certificate": "x", "ssl_key": "y"}, "no PEM that fits together"),
    ],
)
def test_what_cannot_be_used_is_refused_before_a_task_runs(
    spark: SparkSession, options: dict[str, str], words: str
) -> None:
    plan, frame = to_plan(validate("poll", options)), spark.range(1)
    with pytest.raises(ConnectorError, match=words):
        PollSink().probe(spark, plan, frame.schema)
    with pytest.raises(ConnectorError, match=words):
        PollSink().write(frame, plan, WriteRequest("append", Writer("run")))


def test_a_micro_batch_is_refused(spark: SparkSession) -> None:
    plan = to_plan(validate("poll", {"token": TOKEN}))
    with pytest.raises(ConnectorError, match="cannot write a stream; use mode 'batch'"):
        PollSink().write(spark.range(1), plan, WriteRequest("append", Writer("run"), batch=0))
