"""Rows of streams that do not fit: each micro-batch is judged, and each row counts once across restarts."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.replayed_rows import rows_of_run
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.sampling import sample
from tests.spark_programs import program_environment
from tests.stream_driver import plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = "SET job.mode = 'available-now';\n"
LIMIT = "SET job.error.limit.rows = 99;\n"
SCRIPT = """CREATE TABLE src (
  id INT, age INT,
  CONSTRAINT adult EXPECT (age >= 18) ON VIOLATION QUARANTINE,
  CONSTRAINT human EXPECT (age < 500) ON VIOLATION DROP ROW
) USING csv OPTIONS (path 'in', max_files_per_trigger 1);
CREATE TABLE out (id INT, age TINYINT) USING json OPTIONS (path 'out');
INSERT INTO out SELECT id, age FROM src;
"""
NAMED = "SET job.quarantine = rejects; CREATE TABLE rejects USING parquet OPTIONS (path 'rejects');\n"

Bad = list[dict[str, Any]]
Run = Callable[..., Bad]


def add_file(folder: Path, number: int) -> None:
    """One row of each kind: good, damaged, against each rule, too large for the target."""
    (folder / "in").mkdir(exist_ok=True)
    ages = ("30", "x", "5", "600", "300")
    lines = ["id,age", *(f"{number}{index},{age}" for index, age in enumerate(ages))]
    file = folder / f"{number}.csv"
    file.write_text("\n".join(lines), "utf-8")
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads the oldest first
    file.rename(folder / "in" / file.name)


@pytest.fixture
def run(spark: "SparkSession", tmp_path: Path) -> Run:
    """Run a script; returns what it says of bad rows."""

    def run_script(
        *parts: str,
        writer: Writer | None = None,
        control: StreamControl | None = None,
        checkpoint: Mapping[str, Any] | None = None,
    ) -> Bad:
        bad = list[dict[str, Any]]()
        plan = {**plan_of("".join(parts), tmp_path), "checkpoint": checkpoint or {}}
        execute(spark, plan, lambda _: None, writer or Writer("run"), bad_rows=bad, control=control)
        return bad

    return run_script


def counted(bad: Bad) -> dict[str, tuple[int, int, int]]:
    return {each["table"].split()[0]: (each["rows"], each["quarantined"], each["dropped"]) for each in bad}


def written(folder: Path) -> list[int]:
    return sorted(
        json.loads(line)["id"]
        for file in (folder / "out").glob("part-*")
        for line in file.read_text("utf-8").splitlines()
    )


def aside(spark: "SparkSession", *folders: Path) -> list[tuple[str, str]]:
    rows = [row for folder in folders for row in spark.read.parquet(str(folder)).collect()]
    return sorted((row["rule"], row["record"]) for row in rows)


def of_files(*numbers: int) -> list[tuple[str, str]]:
    """What the quarantine has of these files."""
    kinds = {"adult": '{{"id":{0}2,"age":5}}', "cast": '{{"id":{0}4,"age":300}}', "decoding": "{0}1,x"}
    return sorted((rule, text.format(number)) for rule, text in kinds.items() for number in numbers)


def test_each_batch_is_judged_and_a_further_run_counts_its_own_rows(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    add_file(tmp_path, 1)
    add_file(tmp_path, 2)
    bad = run(NOW, LIMIT, SCRIPT)
    assert written(tmp_path) == [10, 20]
    assert counted(bad) == {"src": (10, 4, 2), "out": (4, 2, 0)}
    places = [Path(each["place"].removeprefix("file:")) for each in bad]
    assert places[0] == tmp_path / "checkpoints" / "job" / ".quarantine" / "src"
    assert aside(spark, *places) == of_files(1, 2)
    add_file(tmp_path, 3)
    assert counted(run(NOW, LIMIT, SCRIPT, writer=Writer("next"))) == {"src": (5, 2, 1), "out": (2, 1, 0)}
    assert written(tmp_path) == [10, 20, 30]
    assert aside(spark, *places) == of_files(1, 2, 3)
    assert {row["run"] for row in spark.read.parquet(str(places[0])).collect()} == {"run", "next"}


@pytest.mark.parametrize(
    ("point", "folder"),
    sample(
        [("within the write", ".quarantine/src"), ("after the write", ""), ("within the write", "/out")],
        1,
        "kills of streams with bad rows",
    ),
)
def test_a_killed_driver_loses_and_repeats_neither_rows_nor_counts(
    run: Run, spark: "SparkSession", tmp_path: Path, point: str, folder: str
) -> None:
    for number in (1, 2, 3):
        add_file(tmp_path, number)
    command = [sys.executable, "-m", "tests.stream_driver", str(tmp_path), "1", point, folder]
    killed = subprocess.run(
        command, env=program_environment(), input=NOW + LIMIT + SCRIPT, text=True, timeout=240, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    bad = run(NOW, LIMIT, SCRIPT, writer=Writer("run", 2))
    assert written(tmp_path) == [10, 20, 30]
    assert counted(bad) == {"src": (15, 6, 3), "out": (6, 3, 0)}
    assert aside(spark, *(Path(each["place"].removeprefix("file:")) for each in bad)) == of_files(1, 2, 3)


def test_above_a_limit_the_job_fails_and_goes_on_with_a_higher_one(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    add_file(tmp_path, 1)
    add_file(tmp_path, 2)
    low = LIMIT.replace("99", "3")
    with pytest.raises(SqlError, match=r"5 rows do not fit, and job\.error\.limit\.rows is 3") as caught:
        run(NOW, low, NAMED, SCRIPT)
    assert caught.value.line == 4
    assert written(tmp_path) == [10], "the batch above the limit is undone"
    bad = run(NOW, LIMIT, NAMED, SCRIPT, writer=Writer("run", 2))
    assert counted(bad) == {"src": (10, 4, 2), "out": (4, 2, 0)}
    assert written(tmp_path) == [10, 20]
    assert aside(spark, tmp_path / "rejects") == of_files(1, 2)
    assert {each["place"] for each in bad} == {f"{tmp_path}/rejects"}


def test_a_stream_that_begins_at_a_time_judges_the_rows_that_it_reads(run: Run, tmp_path: Path) -> None:
    add_file(tmp_path, 1)
    add_file(tmp_path, 2)
    at_second = {"start": "fresh", "run_key": "run", "positions": {"*": "2023-11-14T22:13:22+00:00"}}
    assert counted(run(NOW, LIMIT, SCRIPT, checkpoint=at_second)) == {"src": (5, 2, 1), "out": (2, 1, 0)}
    assert written(tmp_path) == [20]


def test_queries_that_run_at_the_same_time_count_a_file_once(run: Run, tmp_path: Path) -> None:
    add_file(tmp_path, 1)
    add_file(tmp_path, 2)

    def look() -> None:
        streams = control.shown().get("streams", {})
        if len(streams) == 2 and all(each.get("batch") == 1 for each in streams.values()):
            control.stopping.set()

    control = StreamControl(look)
    script = "SET job.mode = 'streaming'; SET job.trigger = '200 ms';\n"
    more = "CREATE TABLE more (id INT) USING json OPTIONS (path 'more'); INSERT INTO more SELECT id FROM src;"
    bad = run(script, LIMIT, SCRIPT, more, control=control)
    assert counted(bad) == {"src": (10, 4, 2), "out": (4, 2, 0), "more": (4, 0, 0)}
    assert written(tmp_path) == [10, 20]


def test_a_long_stream_forgets_files_that_it_has_read_at_all_places(run: Run, tmp_path: Path) -> None:
    lists, kept = tmp_path / "checkpoints" / "job" / ".quarantine" / ".counts" / "src", list[int]()

    def look() -> None:
        if control.shown().get("streams", {}).get("out", {}).get("total_rows", 0) < 2 * len(kept) + 2:
            return  # the places may read a file in different batches
        kept.append(sum(each.is_dir() for each in lists.iterdir()))
        if len(kept) == 5:
            control.stopping.set()
        else:
            add_file(tmp_path, len(kept) + 1)

    control = StreamControl(look)
    add_file(tmp_path, 1)
    script = "SET job.mode = 'streaming'; SET job.trigger = '200 ms';\n"
    twice = "SELECT id, age FROM src UNION ALL SELECT a.id, a.age FROM src a JOIN src b ON a.id = b.id"
    bad = run(script, LIMIT, SCRIPT.replace("SELECT id, age FROM src", twice), control=control)
    assert counted(bad) == {"src": (25, 10, 5), "out": (20, 10, 0)}
    assert max(kept) <= 3


def test_a_quarantine_of_an_earlier_version_gets_further_rows(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    add_file(tmp_path, 1)
    place = tmp_path / "checkpoints" / "job" / ".quarantine" / "src"
    old = "SELECT 'old' AS record, 'text' AS form, 'cast' AS rule, 'src' AS source, 'old' AS run"
    spark.sql(old).coalesce(1).write.parquet(str(place))
    assert counted(run(NOW, LIMIT, SCRIPT)) == {"src": (5, 2, 1), "out": (2, 1, 0)}
    of_run = {"place": str(place), "source": "src", "pinned": False}
    new = rows_of_run(spark, {**of_run, "run": "run", "rows": 2}, ("record", "types"))
    assert sorted(row["record"] for row in new.collect()) == ["11,x", '{"id":12,"age":5}']
    assert rows_of_run(spark, {**of_run, "run": "old", "rows": 1}, ("record",)).count() == 1


def test_a_stream_cannot_read_the_table_for_such_rows() -> None:
    more = (
        "CREATE TABLE more USING parquet OPTIONS (path 'more'); INSERT INTO more SELECT record FROM rejects;"
    )
    rejects = NAMED.replace("rejects USING", "rejects (record STRING) USING")
    with pytest.raises(SqlError, match="no INSERT of the same script can read it"):
        compile_script(f"{NOW}{rejects}{SCRIPT}{more}", file="s.sql", base_dir="/data", variables={})
