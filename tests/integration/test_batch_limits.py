"""The limit of the micro-batches of a topic changes while its query runs: no row is lost or doubled."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_runner.push.adjustment import Adjustment
from spark_runner.sql.execution.batch_writer import BatchWriter
from spark_runner.sql.execution.stream_control import StreamControl
from tests.kafka_support import add_kafka
from tests.kafka_tables import COPY, Tables, values
from tests.servers.kafka import Topics
from tests.waiting import wait_until

SHOWN_S = 60
STREAM = "SET job.mode = 'streaming'; SET job.trigger = '200 ms';\n"
TUNED = STREAM + "SET job.batch.tuning = on; SET job.batch.target = '2 s'; SET job.batch.rows.min = 20;\n"


class Stream:
    """A script that streams a topic into files, in a thread, with a target whose time per row is given."""

    def __init__(self, tables: Tables, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables, self.topics = tables, topics
        self.topic = topics.new(partitions=2)
        self.control = StreamControl()
        self.seconds_per_row = 0.0
        self.sizes: list[int] = []
        self.produced = 0
        self.text = ""  # the script, if it is another than a copy
        self.failures: list[BaseException] = []
        write = BatchWriter.write

        def slow(writer: BatchWriter, frame: DataFrame, batch: int) -> None:
            write(writer, frame, batch)
            self.sizes.append(writer.last_rows)
            threading.Event().wait(writer.last_rows * self.seconds_per_row)

        monkeypatch.setattr(BatchWriter, "write", slow)

    def produce(self, rows: int) -> None:
        first, self.produced = self.produced, self.produced + rows
        self.topics.kafka.produce(self.topic, values(*({"id": n} for n in range(first, self.produced))))

    def script(self, settings: str, **options: Any) -> str:
        source = self.tables.kafka("src", "id BIGINT", self.topic, **options)
        return settings + source + self.tables.files("id BIGINT") + COPY

    @contextmanager
    def runs(self, settings: str, **options: Any) -> Iterator[None]:
        self.control.stopping.clear()

        def run() -> None:
            try:
                self.tables.run(self.text or self.script(settings, **options), self.control)
            except BaseException as error:
                self.failures.append(error)
                raise

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            self.control.stopping.set()
            thread.join(SHOWN_S)
        assert self.failures == []

    def written(self) -> list[int]:
        return sorted(n for (n,) in self.tables.written())

    @property
    def facts(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.control.shown().get("streams", {}).get("dst", {})
        return found

    @property
    def shown(self) -> Mapping[str, Any]:
        limit: Mapping[str, Any] = self.facts.get("limit", {})
        return limit

    def wait(self, is_so: Callable[[], bool], words: str) -> None:
        try:
            wait_until(lambda: is_so() or bool(self.failures), SHOWN_S, words)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.shown}, {self.sizes[-20:]}") from error


@pytest.fixture
def stream(spark: SparkSession, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stream:
    add_kafka(spark)
    return Stream(Tables(spark, topics, tmp_path), topics, monkeypatch)


def test_five_changes_under_load_lose_and_double_no_row(stream: Stream) -> None:
    stream.produce(500)
    ended = threading.Event()

    def load() -> None:
        while not ended.wait(0.05):
            stream.produce(40)

    def has_batch_of(limit: int, begun: int) -> bool:
        return any(limit - 2 < rows <= limit for rows in stream.sizes[begun:])  # of two partitions

    loading = threading.Thread(target=load)
    with stream.runs(STREAM, max_offsets_per_trigger=50):
        stream.wait(lambda: bool(stream.sizes), "a micro-batch is written")
        loading.start()
        try:
            for number, limit in enumerate((10, 80, 30, 200, 60), 1):
                begun = len(stream.sizes)
                stream.control.pushes.adjust(Adjustment(batch_rows=limit))
                stream.wait(lambda: stream.shown.get("changes") == number, "the limit changes")  # noqa: B023 - waits here
                stream.wait(lambda: has_batch_of(limit, begun), "a micro-batch has the limit")  # noqa: B023 - likewise
                assert stream.shown["pause_seconds"] < 30
        finally:
            ended.set()
            loading.join()
        stream.control.pushes.adjust(Adjustment(batch_rows=100_000))
        stream.wait(lambda: sum(stream.sizes) >= stream.produced, "all rows are written")
    assert stream.written() == list(range(stream.produced))


# ---------------------------------------------------------------------- the tuning
def test_a_slow_target_makes_the_limit_fall_until_a_micro_batch_takes_the_target_time(stream: Stream) -> None:
    stream.seconds_per_row = 0.004
    stream.produce(4000)
    with stream.runs(TUNED.replace("2 s", "1 s"), max_offsets_per_trigger=800):
        stream.wait(lambda: stream.shown.get("rows", 800) <= 250, "the limit falls")
        assert stream.shown["by"] == "tuning"
        assert "the target is 1 s" in stream.shown["reason"]
        stream.wait(lambda: 0 < stream.facts.get("seconds", 0) < 1.3, "a micro-batch is near the target")
        assert stream.shown["rows"] >= 50, "it does not fall further than the target needs"
    assert len(stream.written()) == len(set(stream.written())) == sum(stream.sizes)


def test_a_fast_target_with_a_lag_makes_the_limit_rise_and_without_a_lag_it_stays(stream: Stream) -> None:
    stream.produce(3000)
    with stream.runs(TUNED, max_offsets_per_trigger=40):
        stream.wait(lambda: stream.shown.get("rows", 40) >= 300, "the limit rises")
        stream.wait(lambda: sum(stream.sizes) == 3000, "all rows are written")
        stream.wait(
            lambda: "reads the" in stream.shown["reason"] or "nothing" in stream.shown["reason"], "it stays"
        )
        reached = stream.shown["rows"]
        stream.produce(10)
        stream.wait(lambda: sum(stream.sizes) == 3010, "further rows are written")
        assert stream.shown["rows"] == reached
    assert stream.written() == list(range(3010))


def test_a_pin_of_an_operator_holds_until_the_tuning_gets_the_limit_back(stream: Stream) -> None:
    stream.produce(3000)
    with stream.runs(TUNED, max_offsets_per_trigger=40):
        stream.wait(lambda: bool(stream.sizes), "a micro-batch is written")
        stream.control.pushes.adjust(Adjustment(batch_rows=30))
        stream.wait(
            lambda: stream.shown.get("by") == "operator" and stream.shown["rows"] == 30, "the pin holds"
        )
        begun = len(stream.sizes)
        stream.wait(lambda: len(stream.sizes) >= begun + 6, "further micro-batches are written")
        assert max(stream.sizes[begun + 1 :]) <= 30
        stream.control.pushes.adjust(Adjustment(is_tuned=True, batch_seconds=5.0))
        stream.wait(lambda: stream.shown["rows"] > 100, "the limit rises again")
        assert (stream.shown["by"], stream.shown["target_seconds"]) == ("tuning", 5.0)


def test_a_stream_without_tuning_keeps_the_limit_of_its_table_and_gets_it_back_after_a_pin(
    stream: Stream,
) -> None:
    stream.produce(1000)
    with stream.runs(STREAM, max_offsets_per_trigger=40):
        stream.wait(lambda: len(stream.sizes) >= 4, "micro-batches are written")
        assert stream.shown == {}
        stream.control.pushes.adjust(Adjustment(batch_rows=10))
        stream.wait(lambda: stream.shown.get("rows") == 10, "the pin holds")
        stream.control.pushes.adjust(Adjustment())
        stream.wait(lambda: stream.shown.get("rows") == 40, "the limit is that of the table")
        assert stream.shown["by"] == "table"


def test_a_further_attempt_goes_on_with_the_limit_that_the_tuning_has_found(stream: Stream) -> None:
    stream.produce(3000)
    with stream.runs(TUNED, max_offsets_per_trigger=40):
        stream.wait(lambda: stream.shown.get("rows", 40) >= 300, "the limit rises")
    found = stream.shown["rows"]
    begun = len(stream.sizes)
    stream.produce(3000)
    stream.control = StreamControl()
    stream.seconds_per_row = 0.001
    with stream.runs(TUNED, max_offsets_per_trigger=40):
        stream.wait(lambda: len(stream.sizes) >= begun + 3, "micro-batches are written")
    assert max(stream.sizes[begun : begun + 3]) > 0.9 * found
    stream.control = StreamControl()
    with stream.runs(STREAM, max_offsets_per_trigger=40):
        begun = len(stream.sizes)
        stream.wait(lambda: len(stream.sizes) >= begun + 3, "micro-batches are written")
        assert max(stream.sizes[begun + 1 :]) <= 40, "without tuning the table decides"


def test_later_statements_of_the_script_do_not_change_the_rows_after_a_change(stream: Stream) -> None:
    stream.produce(400)
    settings = STREAM + "SET spark.sql.session.timeZone = 'UTC';\n"
    zone = "INSERT INTO dst SELECT id, current_timezone() AS zone FROM src;\n"
    source = stream.tables.kafka("src", "id BIGINT", stream.topic, max_offsets_per_trigger=20)
    target = stream.tables.files("id BIGINT, zone STRING")
    stream.text = settings + source + target + zone + "SET spark.sql.session.timeZone = 'Asia/Tokyo';\n"
    with stream.runs(STREAM):
        stream.wait(lambda: bool(stream.sizes), "a micro-batch is written")
        stream.control.pushes.adjust(Adjustment(batch_rows=70))
        stream.wait(lambda: sum(stream.sizes) == 400, "all rows are written")
        assert stream.shown["rows"] == 70
    assert {zone for _, zone in stream.tables.written()} == {"UTC"}
    assert len(stream.tables.written()) == 400
