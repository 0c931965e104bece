"""Programs of users that push by the engine, in tasks of Spark."""

import json
import re
import sys
import types
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from spark_runner.push import (
    Limits,
    Order,
    Permanent,
    Pusher,
    PushSettings,
    Refused,
    Retryable,
    RetryPolicy,
)
from spark_runner.push.adjustment import Adjustment
from spark_runner.push.pushes import Pushes
from tests.servers.web import Received, Reply, web_server

QUICK = RetryPolicy(first_pause=0.01, max_pause=0.1)


class Posts(Pusher):
    """Sends rows as a JSON array; a row of an answer is the error of the row at its place."""

    def __init__(self, url: str) -> None:
        self.url = url

    def lane(self, row: Any) -> str:
        return str(row.topic)

    def key(self, row: Any) -> Any:
        return row.id

    def push(self, rows: Sequence[Any]) -> dict[int, Permanent]:
        body = json.dumps([row.asDict() for row in rows]).encode()
        with urllib.request.urlopen(self.url, body, timeout=10) as answer:  # noqa: S310 - of a test's server
            refused = json.load(answer)
        return {int(index): Permanent(words) for index, words in refused.items()}


def values(received: Sequence[Received]) -> list[dict[str, Any]]:
    return [row for each in received for row in json.loads(each.body)]


def test_rows_of_a_frame_are_pushed_in_the_order_of_their_keys(spark: SparkSession) -> None:
    frame = spark.range(0, 400, 1, 2).selectExpr("id % 7 AS id", "id AS number", "id % 3 AS topic")
    divided = frame.repartition(2, "id").sortWithinPartitions("number")

    def picky(received: Received) -> Reply:
        rows = json.loads(received.body)
        return Reply(
            body=json.dumps({n: "no" for n, row in enumerate(rows) if row["number"] == 150}).encode()
        )

    with web_server(picky) as server:
        settings = PushSettings(order=Order.BY_KEY, batch_records=20, retry=QUICK)
        done = Posts(server.url).run(divided, "posts", settings, Limits(concurrency=4))
        found = values(server.received)
    assert done.delivered == 399
    ((reason, row),) = [(each.reason, json.loads(each.row)) for each in done.dead.collect()]
    assert (reason, row["number"]) == ("no", 150)
    assert sorted(row["number"] for row in found) == list(range(400))
    for key in range(7):
        # One lane has several keys; a key may be in several lanes, each with an order of its own.
        for topic in range(3):
            mine = [row["number"] for row in found if (row["id"], row["topic"]) == (key, topic)]
            assert mine == sorted(mine)


class Numbers(Pusher):
    """Fetches the numbers up to 100, and fails some of its requests at first."""

    def __init__(self, url: str) -> None:
        self.url, self.failed = url, set[int]()

    def fetch(self, position: Any) -> tuple[list[int], int] | None:
        if position >= 100:
            return None
        return list(range(position, position + 10)), position + 10

    def push(self, rows: Sequence[int]) -> None:
        if rows[0] % 20 == 0 and rows[0] not in self.failed:
            self.failed.add(rows[0])
            raise Retryable("again")
        urllib.request.urlopen(self.url, json.dumps(rows).encode(), timeout=10).close()  # noqa: S310 - of a test's server


def test_what_a_program_fetches_is_pushed_from_a_position_on(spark: SparkSession) -> None:
    with web_server() as server:
        settings = PushSettings(order=Order.STRICT, batch_records=5, retry=QUICK)
        done = Numbers(server.url).run_fetched(spark, "numbers", 30, settings)
        assert [row for each in server.received for row in json.loads(each.body)] == list(range(30, 100))
    assert (done.delivered, done.position, done.dead.count()) == (70, 100, 0)


class Fails(Numbers):
    """Its target is gone once it has taken some numbers."""

    def push(self, rows: Sequence[int]) -> None:
        if rows[0] >= 60:
            raise Refused("gone")
        super().push(rows)

    def available(self, position: Any) -> int:
        return max(0, 100 - int(position))


def test_the_next_job_of_the_name_goes_on_after_what_is_acknowledged(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PushSettings(order=Order.STRICT, batch_records=5, retry=QUICK, retry_timeout=0.3)
    with web_server() as server:
        first = Pushes()
        monkeypatch.setattr(Pushes, "of_job", first)
        with pytest.raises(Exception, match="gone"):
            Fails(server.url).run_fetched(spark, "numbers", 30, settings)
        kept = json.loads(json.dumps(first.positions(is_done=False)))
        assert kept["name"]["numbers"]["acknowledged"] == 60
        assert kept["name"]["numbers"]["read"] > 60

        second = Pushes()
        second.follow(kept)
        monkeypatch.setattr(Pushes, "of_job", second)
        done = Numbers(server.url).run_fetched(spark, "numbers", 30, settings)
        assert (done.delivered, done.position) == (40, 100)
        found = [row for each in server.received for row in json.loads(each.body)]
    assert found == list(range(30, 100))
    assert second.positions(is_done=True) == {"name": {"numbers": {"acknowledged": 100, "read": 100}}}


class Picky(Numbers):
    """Its target refuses a number."""

    def push(self, rows: Sequence[int]) -> None:
        if 55 in rows:
            raise Permanent("no")
        super().push(rows)


def test_a_job_that_fails_after_its_push_meets_the_dead_letters_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PushSettings(order=Order.STRICT, batch_records=5, retry=QUICK)
    with web_server() as server:
        pushes = Pushes()
        monkeypatch.setattr(Pushes, "of_job", pushes)
        done = Picky(server.url).run_fetched(spark, "numbers", 30, settings)
        assert (done.position, done.dead.count()) == (100, 1)
        assert pushes.positions(is_done=False)["name"]["numbers"]["acknowledged"] == 50
        assert pushes.positions(is_done=True)["name"]["numbers"]["acknowledged"] == 100
        assert Picky(server.url).run_fetched(spark, "numbers", 30, settings).delivered == 0, "it goes on"


class Wrong(Numbers):
    """Its positions cannot be kept."""

    def __init__(self, url: str, position: Any) -> None:
        super().__init__(url)
        self.position = position

    def fetch(self, position: Any) -> Any:
        return [position], self.position


@pytest.mark.parametrize("position", [{1, 2}, "a file \udcff", "x" * 5000, float("nan")])
def test_a_position_that_cannot_be_kept_ends_the_push(spark: SparkSession, position: Any) -> None:
    with web_server() as server, pytest.raises(Exception, match="a position that cannot be kept: it "):
        Wrong(server.url, position).run_fetched(spark, "wrong", 0)


class Refuses(Pusher):
    """Its target accepts no connection, or is slow."""

    def push(self, rows: Sequence[Any]) -> None:
        raise ConnectionResetError(f"it takes no {len(rows)} rows")


def test_a_target_that_stays_away_ends_the_push(spark: SparkSession) -> None:
    settings = PushSettings(retry=QUICK, retry_timeout=0.5)
    with pytest.raises(
        Exception, match=r"TargetDown: the target took no record for 0.5 s: it takes no [12] rows"
    ):
        Refuses().run(spark.range(3), "refuses", settings)


def test_a_push_of_a_program_is_that_of_its_job(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Pushes()
    mine.adjust(Adjustment(concurrency=3))
    monkeypatch.setattr(Pushes, "of_job", mine)
    with web_server() as server:
        Posts(server.url).run(spark.createDataFrame([Row(id=1, topic="a")]), "mine")
    found = mine.document()["mine"]
    assert (found["delivered"], found["limits"]["concurrency"]) == (1, 3)
    assert found["lanes"]["a"]["delivered"] == 1


def test_the_example_sends_the_flights_of_each_plane_in_their_order(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Path(__file__).parents[2] / "examples" / "push_flights.py"

    def reply(received: Received) -> Reply:
        return (
            Reply(503)
            if len(server.received) % 7 == 3
            else Reply(400 * (b'"flight": 15,' in received.body) or 200)
        )

    with web_server(reply) as server:
        monkeypatch.setattr("sys.argv", [str(example), server.url])
        # As a driver does, so that its classes travel to the tasks by value.
        code = compile(example.read_text("utf-8"), str(example), "exec")
        main = types.ModuleType("__main__")
        main.__file__ = str(example)
        monkeypatch.setitem(sys.modules, "__main__", main)
        exec(code, main.__dict__)  # noqa: S102 - it is the example
    delivered, refused = map(int, re.findall(r"\d+", capsys.readouterr().out))
    assert delivered + refused == 2000
    assert refused > 0
    assert spark.version, "the example uses the session that is there"
