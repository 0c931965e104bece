"""Counts of rows that do not fit in streams are those of the rows that the run has read, each once."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.files.sink import JsonSink
from spark_runner.sql.execution.checkpoints import Checkpoint
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.shared_targets import SharedTarget
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = "SET job.mode = 'available-now';\n"
LIMIT = "SET job.error.limit.rows = 99;\n"
SRC = """CREATE TABLE src (id INT, age INT, CONSTRAINT adult EXPECT (age >= 18) ON VIOLATION DROP ROW)
  USING csv OPTIONS (path 'in', max_files_per_trigger 1);
"""
ALL = SRC.replace(", max_files_per_trigger 1", "")  # all files in one micro-batch
PLAIN = "CREATE TABLE src (id INT, age INT) USING csv OPTIONS (path 'in', max_files_per_trigger 1);\n"
OUT = "CREATE TABLE {0} (id INT) USING json OPTIONS (path '{0}');\n"
COPY = "INSERT INTO {0} SELECT id FROM src;\n"
TWICE = (
    *(NOW, LIMIT, ALL, OUT.format("first"), OUT.format("second")),
    *(COPY.format("first"), COPY.format("second")),
)

Counts = dict[str, tuple[int, int, int]]
Run = Callable[..., Counts]


def add_file(folder: Path, number: int, *lines: str) -> None:
    """Rows that fit, cannot be decoded, and violate the rule; the name needs quotes in a URL."""
    (folder / "in").mkdir(exist_ok=True)
    text = lines or (f"{number}0,30", f"{number}1,x", f"{number}2,5")
    file = folder / f"{number} %41.csv"
    file.write_text("\n".join(("id,age", *text)), "utf-8")
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    file.rename(folder / "in" / file.name)


@pytest.fixture
def run(spark: "SparkSession", tmp_path: Path) -> Run:
    """Run a script; returns rows, quarantined and dropped ones by table that it reads."""

    def run_script(
        *parts: str,
        key: str = "run",
        attempt: int = 1,
        report: Callable[[str], None] = lambda _: None,
        control: StreamControl | None = None,
    ) -> Counts:
        bad, plan = list[dict[str, Any]](), plan_of("".join(parts), tmp_path)
        execute(spark, plan, report, Writer(key, attempt), bad_rows=bad, control=control)
        numbers = {each["table"]: (each["rows"], each["quarantined"], each["dropped"]) for each in bad}
        return {name: each for name, each in numbers.items() if "line" not in name}

    return run_script


def ids(spark: "SparkSession", folder: Path) -> list[int]:
    return sorted(row["id"] for row in spark.read.json(str(folder)).collect())


def test_files_that_come_during_a_run_count_where_they_are_read(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    def report(phase: str) -> None:
        if phase.startswith("INSERT INTO first"):
            add_file(tmp_path, 2)
        elif phase.startswith("INSERT INTO second"):
            add_file(tmp_path, 3)

    add_file(tmp_path, 1)
    assert run(*TWICE, report=report) == {"src": (9, 3, 3)}
    assert (ids(spark, tmp_path / "first"), ids(spark, tmp_path / "second")) == ([10, 20], [10, 20, 30])
    quarantine = tmp_path / "checkpoints" / "job" / ".quarantine"
    rows = spark.read.parquet(str(quarantine / "src")).collect()
    assert sorted(row["record"] for row in rows) == ["11,x", "21,x", "31,x"]
    # The next run reads the third file for the first INSERT alone.
    assert run(*TWICE, key="next") == {"src": (3, 1, 1)}
    assert ids(spark, tmp_path / "first") == [10, 20, 30]
    names = [file.name for file in (quarantine / ".counts" / "src").iterdir()]
    assert names == ["numbers.json"], "a run that has succeeded needs no list of files"


def test_an_attempt_goes_on_with_the_files_that_the_one_before_has_counted(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    def report(phase: str) -> None:
        if phase.startswith("INSERT INTO second"):
            raise RuntimeError(phase)

    for number in (1, 2):
        add_file(tmp_path, number)
    with pytest.raises(RuntimeError, match="second"):
        run(*TWICE, report=report)
    add_file(tmp_path, 3)
    assert run(*TWICE, attempt=2) == {"src": (9, 3, 3)}
    assert ids(spark, tmp_path / "first") == ids(spark, tmp_path / "second") == [10, 20, 30]


def test_counts_belong_to_the_run_that_has_written_the_batch(run: Run, tmp_path: Path) -> None:
    for number in (1, 2):
        add_file(tmp_path, number)
    script = (SRC, OUT.format("out"), COPY.format("out"))
    low, high = (f"SET job.error.limit.rows = {rows};\n" for rows in (1, 9))
    with pytest.raises(SqlError, match="2 rows do not fit"):  # in the second batch, which is undone
        run(NOW, low, *script, key="one")
    add_file(tmp_path, 3)
    assert run(NOW, high, *script, key="two") == {"src": (6, 2, 2)}
    add_file(tmp_path, 4)
    assert run(NOW, high, *script, key="one", attempt=2) == {"src": (6, 2, 2)}
    assert run(NOW, high, *script, key="two", attempt=2) == {"src": (6, 2, 2)}


def test_a_limit_judges_the_rows_that_its_run_reads(run: Run, tmp_path: Path) -> None:
    script = (PLAIN, OUT.format("out"), COPY.format("out"))
    add_file(tmp_path, 1, "1,1", "2,2", "3,3")
    assert run(NOW, *script, key="old") == {}
    add_file(tmp_path, 2, "4,x", "5,5")
    with pytest.raises(SqlError, match="1 of 2 rows do not fit"):
        run(NOW, "SET job.error.limit.percent = 20;\n", *script)
    assert run(NOW, LIMIT, *script, attempt=2)["src"] == (2, 1, 0)


def test_rows_that_one_insert_reads_twice_count_once(run: Run, spark: "SparkSession", tmp_path: Path) -> None:
    add_file(tmp_path, 1)
    add_file(tmp_path, 2)
    query = (
        "INSERT INTO out WITH s AS (SELECT id FROM src)"
        " SELECT id FROM s UNION ALL SELECT a.id FROM s a JOIN src b ON a.id = b.id;\n"
    )
    assert run(NOW, LIMIT, SRC, OUT.format("out"), query)["src"] == (6, 2, 2)
    assert ids(spark, tmp_path / "out") == [10, 10, 20, 20]


def test_a_stream_without_files_counts_the_rows_that_its_insert_reads(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    def look() -> None:
        if control.shown().get("streams", {}).get("out", {}).get("total_rows", 0) > 10:
            control.stopping.set()

    control = StreamControl(look)
    script = """SET job.mode = 'streaming'; SET job.trigger = '200 ms';
    CREATE TABLE ticks (value BIGINT, CONSTRAINT even EXPECT (value % 2 = 0) ON VIOLATION DROP ROW)
      USING rate OPTIONS (rows_per_second 50);
    CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
    INSERT INTO out SELECT value FROM ticks;
    """
    rows, quarantined, dropped = run(script, control=control)["ticks"]
    written = ids(spark, tmp_path / "out")
    assert written == list(range(0, rows, 2))
    assert (quarantined, dropped) == (0, rows - len(written))


def test_mode_error_holds_for_the_first_batch_of_all_inserts(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    table = "CREATE TABLE {0} (id INT) USING csv OPTIONS (path '{0}');\n"
    out = "CREATE TABLE out (id INT) USING json OPTIONS (path 'out', mode 'error');\n"
    copies = "INSERT INTO out SELECT id FROM a;\nINSERT INTO out SELECT id FROM b;\n"
    script = (NOW, table.format("a"), table.format("b"), out, copies)
    for name in ("a", "b", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "1.csv").write_text("id\n1\n")
    foreign = tmp_path / "out" / "foreign.json"
    foreign.write_text('{"id":9}\n')
    with pytest.raises(SqlError, match="mode 'error'") as caught:
        run(*script)
    assert caught.value.line == 6, "the first INSERT has no rows"
    foreign.unlink()
    run(*script)
    (tmp_path / "a" / "2.csv").write_text("id\n2\n")
    run(*script)
    assert ids(spark, tmp_path / "out") == [1, 2]


def test_a_set_that_begins_again_counts_its_rows_once_and_writes_its_targets_once(
    run: Run, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = JsonSink.write, list[str]()

    def fail_second(self: JsonSink, frame: Any, options: Any, request: WriteRequest) -> Any:
        found = write(self, frame, options, request)
        written.append(options["path"])
        if len(written) == 2:
            raise RuntimeError("the driver dies after the second INSERT")
        return found

    out = OUT.format("out").replace("'out')", "'out', mode 'error')")
    both = COPY.format("out") + COPY.replace("id FROM", "id + 100 FROM").format("out")
    script = (
        NOW,
        LIMIT,
        SRC,
        out,
        OUT.format("more"),
        f"BEGIN STATEMENT SET; {both} END;",
        COPY.format("more"),
    )
    add_file(tmp_path, 1)
    monkeypatch.setattr(JsonSink, "write", fail_second)
    with pytest.raises(SqlError, match="the driver dies"):
        run(*script)
    assert ids(spark, tmp_path / "out") == [10, 110]
    assert run(*script, attempt=2) == {"src": (3, 1, 1)}
    assert ids(spark, tmp_path / "out") == [10, 110]
    assert ids(spark, tmp_path / "more") == [10]
    rows = spark.read.parquet(str(tmp_path / "checkpoints" / "job" / ".quarantine" / "src")).collect()
    assert [row["record"] for row in rows] == ["11,x"]


def test_a_first_batch_that_a_dead_driver_has_left_is_no_foreign_data(
    spark: "SparkSession", tmp_path: Path
) -> None:
    other = Checkpoint(spark, f"file:{tmp_path}/other")
    with other.opened("fingerprint") as record:
        stream = record.stream
    options = {"path": str(tmp_path / "out"), "partition_by": [], "compression": "none"}
    request = Writer(f"{stream}-0")
    shared = SharedTarget(spark, [(other, "")])

    def write() -> None:
        JsonSink().write(spark.range(1), options, WriteRequest("append", request))

    write()
    assert not shared.has_rows(JsonSink(), options)
    assert not list((tmp_path / "out").glob("part-*"))
    write()
    (tmp_path / "other" / "commits").mkdir()
    (tmp_path / "other" / "commits" / "0").touch()
    assert shared.has_rows(JsonSink(), options)
    assert list((tmp_path / "out").glob("part-*"))
