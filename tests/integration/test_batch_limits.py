"""The limit of the micro-batches of a topic changes while its query runs: no row is lost or doubled."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.kafka.source import KafkaSource
from spark_runner.push.adjustment import Adjustment
from spark_runner.sql.execution.batch_writer import BatchWriter
from spark_runner.sql.execution.stream_control import StreamControl
from tests.kafka_support import add_kafka
from tests.kafka_tables import COPY, Tables, values
from tests.servers.kafka import Topics
from tests.waiting import wait_until

SHOWN_S = 180
LAG = 3_000  # rows: far more than are read until the limit has risen to HIGH, also on a slow machine
HIGH = 150
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
    stream.seconds_per_row = 0.012
    stream.produce(20_000)  # more than are read until the limit has settled, also on a slow machine
    with stream.runs(TUNED.replace("2 s", "3 s"), max_offsets_per_trigger=400):  # 1 s without rows
        stream.wait(lambda: stream.shown.get("rows", 400) <= 250, "the limit falls")
        assert stream.shown["by"] == "tuning"
        assert "the target is 3 s" in stream.shown["reason"]
        stream.wait(lambda: 0 < stream.facts.get("seconds", 0) < 3.9, "a micro-batch is near the target")
        assert stream.shown["rows"] >= 50, "it does not fall further than the target needs"
    assert len(stream.written()) == len(set(stream.written())) == sum(stream.sizes)


def test_a_fast_target_with_a_lag_makes_the_limit_rise_and_without_a_lag_it_stays(stream: Stream) -> None:
    stream.produce(LAG)
    with stream.runs(TUNED, max_offsets_per_trigger=40):
        stream.wait(lambda: stream.shown.get("rows", 40) >= HIGH, "the limit rises")
        stream.wait(lambda: sum(stream.sizes) == LAG, "all rows are written")
        stream.wait(
            lambda: "reads the" in stream.shown["reason"] or "nothing" in stream.shown["reason"], "it stays"
        )
        reached = stream.shown["rows"]
        stream.produce(10)
        stream.wait(lambda: sum(stream.sizes) == LAG + 10, "further rows are written")
        assert stream.shown["rows"] == reached
    assert stream.written() == list(range(LAG + 10))


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
    stream.produce(LAG)
    with stream.runs(TUNED, max_offsets_per_trigger=40):
        stream.wait(lambda: stream.shown.get("rows", 40) >= HIGH, "the limit rises")
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


def test_a_limit_below_the_number_of_partitions_rises_while_rows_wait(stream: Stream) -> None:
    stream.topic = stream.topics.new("wide", partitions=16)
    stream.produce(3000)
    settings = TUNED.replace("2 s", "20 s").replace("min = 20", "min = 1")
    with stream.runs(settings, max_offsets_per_trigger=5):
        stream.wait(lambda: stream.shown.get("rows", 5) >= 40, "the limit rises")
        assert stream.sizes[0] == 16, "each partition gives a row"


def test_a_change_while_no_rows_come_is_no_long_pause(stream: Stream) -> None:
    stream.produce(60)
    with stream.runs(STREAM, max_offsets_per_trigger=40):
        stream.wait(lambda: stream.facts.get("total_rows") == 60, "all rows are written")
        stream.control.pushes.adjust(Adjustment(batch_rows=30))
        stream.wait(lambda: stream.shown.get("pause_seconds", 0) > 0, "the query reads again")
        shown, triggers = stream.shown["pause_seconds"], stream.facts["triggers"]
        stream.wait(lambda: stream.facts["triggers"] > triggers + 1, "it finds no rows")
        stream.produce(10)
        stream.wait(lambda: stream.facts.get("total_rows") == 70, "further rows are written")
        assert stream.shown["pause_seconds"] == shown


def test_changes_leave_no_threads_and_connections(stream: Stream) -> None:
    stream.produce(10)

    def is_changed(limit: int) -> bool:
        return stream.shown.get("rows") == limit

    with stream.runs(STREAM, max_offsets_per_trigger=40):
        stream.wait(lambda: sum(stream.sizes) == 10, "all rows are written")
        stream.control.pushes.adjust(Adjustment(batch_rows=50))
        stream.wait(lambda: is_changed(50), "the limit changes")
        threads, sockets = threading.active_count(), open_files()
        for limit in range(51, 61):
            stream.control.pushes.adjust(Adjustment(batch_rows=limit))
            stream.wait(lambda: is_changed(limit), "the limit changes")  # noqa: B023 - waits here
        few = 3  # of the last change, whose end Spark has yet to report
        stream.wait(lambda: threading.active_count() <= threads + few, "the threads of earlier starts end")
        stream.wait(lambda: open_files() <= sockets + 2 * few, "their connections are closed")


def open_files() -> int:
    """Those of this process, and of the JVM that it has started."""
    java = Path(f"/proc/self/task/{os.getpid()}/children").read_text("utf-8").split()
    return sum(len([*Path(f"/proc/{process}/fd").iterdir()]) for process in ["self", *java])


# ---------------------------------------------------------------------- other queries
def test_the_inserts_of_a_statement_set_go_on_together_and_rows_that_do_not_fit_count_once(
    stream: Stream,
) -> None:
    stream.produce(300)
    stream.topics.kafka.produce(stream.topic, [b"no json"])
    stream.produce(300)
    source = stream.tables.kafka("src", "id BIGINT", stream.topic, max_offsets_per_trigger=40)
    other = f"CREATE TABLE other (id BIGINT) USING parquet OPTIONS (path '{stream.tables.folder}/other');\n"
    both = "INSERT INTO dst SELECT id FROM src; INSERT INTO other SELECT -id FROM src;"
    stream.text = (
        f"{STREAM}SET job.error.limit.rows = 5;\n{source}{stream.tables.files('id BIGINT')}{other}"
        f"EXECUTE STATEMENT SET BEGIN {both} END;"
    )
    with stream.runs(STREAM):
        stream.wait(lambda: len(stream.sizes) > 2, "a micro-batch is written")
        stream.control.pushes.adjust(Adjustment(batch_rows=90))
        stream.wait(lambda: sum(stream.sizes) == 1200, "both targets have all rows")
        assert stream.shown["changes"] == 1
    assert stream.written() == list(range(600))
    others = stream.tables.spark.read.parquet(f"{stream.tables.folder}/other").collect()
    assert sorted(-n for (n,) in others) == list(range(600))
    found = [(each["table"], each["rows"], each["quarantined"]) for each in stream.tables.bad_rows]
    assert found[0] == ("src", 601, 1)
    assert sum(quarantined for _, _, quarantined in found) == 1


def test_a_query_of_two_streams_keeps_the_limits_of_its_tables(stream: Stream) -> None:
    stream.produce(200)
    one = stream.tables.kafka("one", "id BIGINT", stream.topic, max_offsets_per_trigger=20)
    two = stream.tables.kafka("two", "id BIGINT", stream.topic, max_offsets_per_trigger=20)
    union = "INSERT INTO dst SELECT id FROM one UNION ALL SELECT id FROM two"
    stream.text = TUNED + one + two + stream.tables.files("id BIGINT") + union
    with stream.runs(TUNED):
        stream.control.pushes.adjust(Adjustment(batch_rows=100))
        stream.wait(lambda: sum(stream.sizes) == 400, "all rows are written")
        assert stream.shown == {}
    assert max(stream.sizes) <= 40


def test_a_window_keeps_its_state_over_a_change(stream: Stream) -> None:
    stream.topic = stream.topics.new("ordered", partitions=1)  # of two, the slower one would have late rows
    stream.produce(400)
    source = stream.tables.kafka(
        "src", "id BIGINT, ts AS timestamp_seconds(id), WATERMARK FOR ts AS ts", stream.topic
    )
    target = stream.tables.files("begin BIGINT, rows BIGINT")
    count = "SELECT unix_seconds(window.start), count(*) FROM src GROUP BY window(ts, '100 seconds');"
    settings = "SET spark.sql.shuffle.partitions = 1;\n"
    stream.text = (
        STREAM
        + settings
        + source.replace("OPTIONS (", "OPTIONS (max_offsets_per_trigger 30, ")
        + target
        + f"INSERT INTO dst {count}"
    )
    stream.topics.kafka.produce(stream.topic, values({"id": 10_000}))
    with stream.runs(STREAM):
        stream.wait(lambda: stream.facts.get("batch", 0) >= 2, "micro-batches have ended")
        stream.control.pushes.adjust(Adjustment(batch_rows=70))
        stream.wait(lambda: sum(stream.sizes) == 4, "all windows have ended")
        assert stream.shown["changes"] == 1
    assert sorted(stream.tables.written()) == [(begin, 100) for begin in range(0, 400, 100)]


def test_a_change_that_fails_leaves_the_query_as_it_is(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.produce(1000)
    with stream.runs(STREAM, max_offsets_per_trigger=20):
        stream.wait(lambda: bool(stream.sizes), "a micro-batch is written")

        def fails(*_: Any, **__: Any) -> None:
            raise ConnectorError("no broker answers")

        monkeypatch.setattr(KafkaSource, "stream_after", fails)
        stream.control.pushes.adjust(Adjustment(batch_rows=90))
        stream.wait(lambda: "no broker answers" in stream.shown.get("reason", ""), "the reason is shown")
        assert stream.shown["rows"] == 20
        stream.wait(lambda: sum(stream.sizes) == 1000, "all rows are written")
    assert stream.written() == list(range(1000))
