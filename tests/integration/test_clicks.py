"""The script of the streaming demo, `examples/clicks.sql`, on a real Kafka and a real Redis."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from tests.kafka_support import add_kafka
from tests.servers.kafka import Topics
from tests.servers.redis import RedisServer
from tests.stream_driver import plan_of

SCRIPT = Path(__file__).parents[2] / "examples" / "clicks.sql"
SHA256 = "2c531f088792182f96268857995465fb502ef16a7a47641f90ca89e131d7ea2a"
PAGES = ("home", "shop")
COUNTS = re.compile(r"(?P<start>\S+ \S+) (?P<end>\S+ \S+) clicks=(\d+) visitors=(\d+) referrers=(\d+)")


def clicks(first: int, number: int) -> list[bytes]:
    """Clicks on two pages by three visitors, and a record that is no click."""
    made = [
        {"page": PAGES[n % 2], "visitor": f"v{n % 3}", "referrer": None if n % 4 else f"r{n % 8}"}
        for n in range(first, first + number)
    ]
    return [b"{no click", *(json.dumps(click).encode() for click in made)]


def test_the_script_is_the_one_that_users_of_other_engines_know() -> None:
    """A change of the file is a change of what this project promises to run."""
    assert hashlib.sha256(SCRIPT.read_bytes()).hexdigest() == SHA256


@pytest.mark.spark
def test_counts_of_clicks_arrive_in_lists_window_by_window(
    spark: SparkSession, topics: Topics, redis_server: RedisServer, tmp_path: Path
) -> None:
    add_kafka(spark)
    topic = topics.new("clicks", partitions=2)
    topics.kafka.produce(topic, clicks(0, 10))  # before the start: the script reads later records alone
    sent = 0

    def look() -> None:
        nonlocal sent
        if control.stopping.is_set():
            return  # the report of a last trigger may come after the test: its topic is deleted then
        streams = control.shown().get("streams")
        with redis_server.client() as client:
            windows = len(client.lrange("clicks:home", 0, -1))
        if windows >= 2:
            control.stopping.set()
        elif streams:  # it has looked at the topic
            topics.kafka.produce(topic, clicks(sent, 12))
            sent += 12

    control = StreamControl(look)
    host, port = redis_server.options.values()
    given = {"topic": topic, "kafka": topics.kafka.servers, "redis": host, "redis_port": port}
    plan = plan_of(SCRIPT.read_text("utf-8"), tmp_path, **given, window="'2' SECOND")
    with redis_server.client() as client:
        client.delete("clicks:home", "clicks:shop")
        (result,) = execute(spark, plan, lambda _: None, control=control)
        found = {page: client.lrange(f"clicks:{page}", 0, -1) for page in PAGES}
        assert 86_000 < client.ttl("clicks:home") <= 86_400
        client.delete("clicks:home", "clicks:shop")
    assert sum(map(len, found.values())) == result["rows"]
    for counts in found.values():
        rows = [COUNTS.fullmatch(each) for each in counts]
        assert all(rows), counts
        starts = [row["start"] for row in rows if row]
        assert starts == sorted(starts, reverse=True), "the latest window is the first of its list"
        for row in filter(None, rows):
            number, visitors, referrers = map(int, row.groups()[2:])
            assert number % 6 == 0  # half of each twelve
            assert number > 0
            assert visitors == 3
            assert referrers <= 2
    assert (
        sum(int(row[3]) for counts in found.values() for row in map(COUNTS.fullmatch, counts) if row) <= sent
    )
