# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statement sets of modes that stream: one query reads the stream once, and writes all targets."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent

from spark_runner.connectors.base import Writer
from spark_runner.sql.checkpoints.folders import LocalFolders
from spark_runner.sql.checkpoints.listing import checkpoints_in
from spark_runner.sql.checkpoints.removal import remove
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.execution.triggers import Triggers
from spark_runner.sql.text.errors import SqlError
from tests.sampling import sample
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = "SET job.mode = 'available-now';\n"
STREAMING = "SET job.mode = 'streaming'; SET job.trigger = '200 ms';\n"
TABLES = """CREATE TABLE orders (id BIGINT, twice AS id * 2) USING json
  OPTIONS (path 'in', max_files_per_trigger 1);
CREATE TABLE names (id BIGINT, name STRING) USING inline OPTIONS (rows '[[1, "a"], [4, "b"]]');
CREATE VIEW named AS SELECT o.*, name FROM orders o LEFT JOIN names USING (id);
CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
CREATE TABLE more (id BIGINT, name STRING) USING json OPTIONS (path 'more');
CREATE TABLE last (id BIGINT) USING parquet OPTIONS (path 'last');
"""
SET = """EXECUTE STATEMENT SET BEGIN
  INSERT INTO out SELECT id FROM named;
  INSERT INTO more BY NAME SELECT name, twice AS id FROM named WHERE id % 2 = 0;
  INSERT INTO last SELECT id + 100 FROM orders;
END;
"""
ALL = range(9)
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(
        text: str = NOW + TABLES + SET, control: StreamControl | None = None, **added: Any
    ) -> list[dict[str, Any]]:
        plan = {**plan_of(text, tmp_path), **added}
        return execute(spark, plan, lambda _: None, Writer("run"), control=control)

    return run_script


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that Spark has read from sources, by trigger."""
    found = list[int]()
    reported = Triggers.onQueryProgress

    def report(self: Triggers, event: QueryProgressEvent) -> None:
        found.append(event.progress.numInputRows)
        reported(self, event)

    monkeypatch.setattr(Triggers, "onQueryProgress", report)
    return found


def add_files(folder: Path, *ids: int) -> None:
    """Files of three rows each."""
    (folder / "in").mkdir(exist_ok=True)
    for first in ids[::3]:
        file = folder / f"{first}.json"
        file.write_text("\n".join(json.dumps({"id": first + more}) for more in range(3)))
        os.utime(file, (1_700_000_000 + first, 1_700_000_000 + first))  # Spark reads the oldest first
        file.rename(folder / "in" / file.name)


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    files = (folder / name).glob("part-*")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def check_targets(spark: SparkSession, folder: Path, ids: range = ALL) -> None:
    assert sorted(row["id"] for row in rows_of(folder, "out")) == list(ids)
    more = sorted((row["id"], row.get("name")) for row in rows_of(folder, "more"))
    assert more == [(each * 2, "b" if each == 4 else None) for each in ids if each % 2 == 0]
    last = [row[0] for row in spark.read.parquet(str(folder / "last")).collect()]
    assert sorted(last) == [each + 100 for each in ids]


def test_one_query_reads_the_stream_once_and_writes_all_targets(
    run: Run, spark: SparkSession, tmp_path: Path, read: list[int]
) -> None:
    add_files(tmp_path, *ALL)
    results = run()
    check_targets(spark, tmp_path)
    assert [(each["target"], each["rows"], each["batches"], each["line"]) for each in results] == [
        *(("out", 9, 3, 10), ("more", 5, 3, 11), ("last", 9, 3, 12))
    ]
    assert set(read) == {3}, "each micro-batch reads its file once for all targets"
    assert [each.name for each in (tmp_path / "checkpoints" / "job").iterdir()] == ["out,set"]
    add_files(tmp_path, 9, 10, 11)
    assert [each["rows"] for each in run()] == [3, 1, 3]
    check_targets(spark, tmp_path, range(12))


def test_a_running_set_shows_each_insert_and_ends_gracefully(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    add_files(tmp_path, *ALL)

    def look() -> None:
        shown.update(control.shown().get("streams", {}))
        if all(shown.get(name, {}).get("total_rows") == 9 for name in ("last", "apart")):
            control.stopping.set()

    shown: dict[str, Any] = {}
    control = StreamControl(look)
    apart = "CREATE TABLE apart (id BIGINT) USING json OPTIONS (path 'apart');"
    apart += "INSERT INTO apart SELECT id FROM orders;"
    results = run(STREAMING + TABLES + SET + apart, control)
    check_targets(spark, tmp_path)
    expected = {"out": 9, "more": 5, "last": 9, "apart": 9}
    assert {each["target"]: each["rows"] for each in results} == expected
    assert {name: each["total_rows"] for name, each in shown.items()} == expected
    assert control.totals(results) == {"streamed": {"rows": 32, "batches": 12}}
    commits = tmp_path / "checkpoints" / "job" / "out,set" / "commits"
    assert {file.name for file in commits.iterdir() if file.name.isdigit()} == {"0", "1", "2"}
    assert [each["rows"] for each in run()] == [0, 0, 0], "the next run has nothing left to read"


KILLS = [
    *(("before the write", ""), ("within the write", "/out"), ("within the write", "/more")),
    *(("within the write", "/last"), ("after the write", "")),
]


@pytest.mark.parametrize(("point", "written"), sample(KILLS, 1, "kills of statement sets of streams"))
def test_a_killed_driver_loses_and_repeats_no_row_of_any_target(
    run: Run, spark: SparkSession, tmp_path: Path, point: str, written: str
) -> None:
    add_files(tmp_path, *ALL)
    command = [sys.executable, "-m", "tests.stream_driver", str(tmp_path), "1", point, written]
    killed = subprocess.run(command, input=NOW + TABLES + SET, text=True, timeout=240, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(rows_of(tmp_path, "out")) < len(ALL)
    run()
    check_targets(spark, tmp_path)


def test_two_inserts_of_a_set_into_one_target_replace_their_own_rows(run: Run, tmp_path: Path) -> None:
    add_files(tmp_path, 0)
    script = f"""{NOW}CREATE TABLE orders (id BIGINT) USING json OPTIONS (path 'in');
      CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
      CREATE TABLE bad (id INT) USING json OPTIONS (path 'bad');
      BEGIN STATEMENT SET;
      INSERT INTO out SELECT id FROM orders; INSERT INTO out SELECT id + 10 FROM orders;
      INSERT INTO bad SELECT concat('', id) FROM orders; END;"""
    with pytest.raises(SqlError, match="CAST_INVALID_INPUT") as failed:
        run(script.replace("''", "'x'"))
    assert failed.value.line == 7
    expected = [0, 1, 2, 10, 11, 12]
    assert sorted(row["id"] for row in rows_of(tmp_path, "out")) == expected, "the batch failed at its end"
    run(script, checkpoint={"start": "resume"})
    assert sorted(row["id"] for row in rows_of(tmp_path, "out")) == expected
    assert len(rows_of(tmp_path, "bad")) == 3


STATES = [
    "SELECT id FROM (SELECT id FROM seen GROUP BY window(at, '1 minute'), id)",
    "SELECT id FROM distinct_ids",
    "SELECT a.id FROM seen a JOIN seen b ON a.id = b.id AND a.at = b.at",
    "SELECT id FROM (SELECT id FROM seen LIMIT 5)",
]


def test_an_insert_with_a_state_is_refused_before_anything_is_written(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    add_files(tmp_path, 0)
    tables = f"""{NOW}CREATE TABLE seen (id BIGINT, at AS TIMESTAMP '2026-01-01', WATERMARK FOR at AS at)
      USING json OPTIONS (path 'in');
    CREATE VIEW distinct_ids AS SELECT id FROM (SELECT DISTINCT id, at FROM seen);
    CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
    CREATE TABLE more (id BIGINT) USING json OPTIONS (path 'more');
    """
    for query in STATES:
        text = f"""{tables}EXECUTE STATEMENT SET BEGIN INSERT INTO out SELECT id FROM seen;
        INSERT INTO more {query}; END;"""
        with pytest.raises(SqlError, match="write this INSERT outside of the set") as refused:
            run(text)
        assert refused.value.line == 8
        report = analyse_script(spark, plan_of(text, tmp_path))
        assert [(each["line"], each["message"]) for each in report["errors"]] == [(8, refused.value.message)]
    assert not (tmp_path / "out").exists()


def test_an_insert_that_moves_into_a_set_or_out_of_it_does_not_read_all_rows_again(
    run: Run, tmp_path: Path
) -> None:
    add_files(tmp_path, 0)
    for name in ("out", "more", "last"):
        (tmp_path / name).mkdir()  # Spark looks at each table that a script declares
    single = f"{NOW}{TABLES}INSERT INTO more BY NAME SELECT name, twice AS id FROM named WHERE id % 2 = 0;"
    run(single)
    with pytest.raises(SqlError, match=r"moved .* into a statement set, out of one.*job/more"):
        run()
    run(checkpoint={"start": "fresh", "run_key": "run"})
    add_files(tmp_path, 3)
    run()
    apart = f"{NOW}{TABLES}INSERT INTO out SELECT id FROM orders;"
    with pytest.raises(SqlError, match=r"moved .*job/out,set"):
        run(apart)
    assert sorted(row["id"] for row in rows_of(tmp_path, "out")) == list(range(6))
    place = f"file:{tmp_path}/checkpoints"
    assert [each.target for each in checkpoints_in(LocalFolders(), place, "job")] == [
        "more",
        "out",
        "out,set",
    ]
    remove(LocalFolders(), f"{place}/job/out,set")
    assert run(apart)[0]["rows"] == 6


@pytest.mark.parametrize("start", ["", "resume"])
@pytest.mark.parametrize("is_first", [True, False])
def test_an_insert_that_leaves_a_set_which_stays_does_not_read_all_rows_again(
    run: Run, tmp_path: Path, start: str, *, is_first: bool
) -> None:
    add_files(tmp_path, 0)
    tables = """CREATE TABLE orders (id BIGINT) USING json OPTIONS (path 'in');
    CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
    CREATE TABLE more (id BIGINT) USING json OPTIONS (path 'more');
    """
    out, more = (f"INSERT INTO {name} SELECT id FROM orders;" for name in ("out", "more"))
    run(f"{NOW}{tables}BEGIN STATEMENT SET; {out} {more} END;")
    stays = f"BEGIN STATEMENT SET; {out} END;"
    changed = f"{more} {stays}" if is_first else f"{stays} {more}"
    use = {"checkpoint": {"start": start}} if start else {}
    for _ in range(2):
        with pytest.raises(SqlError, match=r"moved .*job/out,set|are not those that its checkpoint"):
            run(f"{NOW}{tables}{changed}", **use)
    for name in ("out", "more"):
        assert sorted(row["id"] for row in rows_of(tmp_path, name)) == [0, 1, 2]


def test_a_changed_set_is_refused_or_begins_where_it_is_told_to(run: Run, tmp_path: Path) -> None:
    add_files(tmp_path, 0, 1, 2, 3, 4, 5)
    tables = """CREATE TABLE orders (id BIGINT) USING json OPTIONS (path 'in');
    CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
    """
    insert = "INSERT INTO out SELECT id FROM orders;"
    run(f"{NOW}{tables}BEGIN STATEMENT SET; {insert} END;")
    changed = f"{NOW}{tables}BEGIN STATEMENT SET; {insert} INSERT INTO out SELECT -id FROM orders; END;"
    with pytest.raises(SqlError, match="are not those that its checkpoint") as refused:
        run(changed)
    assert refused.value.line == 4
    at_second = {"start": "fresh", "run_key": "run", "positions": {"orders": "2023-11-14T22:13:23+00:00"}}
    assert [each["rows"] for each in run(changed, checkpoint=at_second)] == [3, 3]


def test_an_insert_that_reads_files_of_a_target_of_its_set_is_refused(run: Run, tmp_path: Path) -> None:
    add_files(tmp_path, 0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.json").write_text('{"id": 1}')
    query = f"SELECT id FROM orders JOIN (SELECT id FROM json.`{tmp_path}/out`) USING (id)"
    script = f"""{NOW}CREATE TABLE orders (id BIGINT) USING json OPTIONS (path 'in');
    CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
    CREATE TABLE more (id BIGINT) USING json OPTIONS (path 'more');
    BEGIN STATEMENT SET; INSERT INTO out SELECT id FROM orders;
    INSERT INTO more {query}; END;"""
    with pytest.raises(SqlError, match="an INSERT of the same set writes") as refused:
        run(script)
    assert refused.value.line == 6


def test_rows_that_do_not_fit_count_once_for_the_set(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path, 0, 1, 2, 3, 4, 5)
    text = TABLES.replace("id * 2)", "id * 2, CONSTRAINT few EXPECT (id <> 1) ON VIOLATION QUARANTINE)")
    bad = list[dict[str, Any]]()
    plan = plan_of(f"{NOW}SET job.error.limit.rows = 9;\n{text}{SET}", tmp_path)
    results = execute(spark, plan, lambda _: None, Writer("run"), bad_rows=bad)
    assert [each["columns"] for each in results] == [["id"], ["id", "name"], ["id"]]
    assert [(each["table"], each["rows"], each["quarantined"]) for each in bad] == [
        *(("orders", 6, 1), ("out (line 11)", 5, 0), ("more (line 12)", 3, 0), ("last (line 13)", 5, 0))
    ]
    assert sorted(row["id"] for row in rows_of(tmp_path, "out")) == [0, 2, 3, 4, 5]
