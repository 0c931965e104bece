# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Streams into tables of Spark catalogs: a database behind JDBC, and Spark's own."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.catalog_sink import CatalogSink
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.catalog_support import JDBC
from tests.sampling import sample
from tests.stream_driver import plan_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Run = Callable[..., list[dict[str, Any]]]
STREAMING = "SET job.mode = 'streaming'; SET job.trigger = '200 ms';\n"


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(text: str, control: StreamControl | None = None) -> list[dict[str, Any]]:
        return execute(spark, plan_of(text, tmp_path), lambda _: None, control=control)

    return run_script


def derby(folder: Path) -> str:
    """A catalog that is a database of this test, with the table that streams write."""
    return f"""SET spark.sql.catalog.shop = {JDBC};
SET spark.sql.catalog.shop.url = 'jdbc:derby:memory:{folder.name};create=true';
CREATE NAMESPACE IF NOT EXISTS shop.S1;
CREATE TABLE IF NOT EXISTS shop.S1.sold (id INT, name STRING);
"""


def source(folder: Path, *ids: int) -> str:
    (folder / "in").mkdir(exist_ok=True)
    file = folder / f"{ids[0]}.json"
    file.write_text("\n".join(json.dumps({"id": each}) for each in ids))
    os.utime(file, (1_700_000_000 + ids[0], 1_700_000_000 + ids[0]))  # Spark reads the oldest first
    file.rename(folder / "in" / file.name)
    return "CREATE TABLE src (id INT) USING json OPTIONS (path 'in', max_files_per_trigger 1);\n"


def written(folder: Path) -> list[int]:
    files = (folder / "out").glob("part-*")
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


def check_sold(run: Run, folder: Path, *rows: str, made: str = "") -> None:
    """The rows of the table, in order."""
    found = "(SELECT array_sort(collect_list(concat(id, name))) FROM shop.S1.sold)"
    run(f"{made or derby(folder)}ASSERT {found} = array({', '.join(map(repr, rows))})")


def is_there(group: int) -> bool:
    """Whether a group of processes has any."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_stream_adds_its_rows_to_a_table_of_a_catalog_in_both_modes(run: Run, tmp_path: Path) -> None:
    script = derby(tmp_path) + source(tmp_path, 1, 2)
    script += "INSERT INTO shop.S1.sold BY NAME SELECT concat('n', id) AS name, id FROM src WHERE id <> 2;\n"
    (result,) = run(f"SET job.mode = 'available-now';\n{script}")
    assert {name: result[name] for name in ("target", "connector", "rows", "batches", "line", "columns")} == {
        "target": "shop.S1.sold",
        "connector": "catalog",
        "rows": 1,
        "batches": 1,
        "line": 7,
        "columns": ["name", "id"],
    }
    source(tmp_path, 3, 4)

    def look() -> None:
        if control.shown().get("streams", {}).get("shop.S1.sold", {}).get("total_rows") == 2:
            control.stopping.set()

    control = StreamControl(look)
    (result,) = run(STREAMING + script, control)
    assert result["rows"] == 2
    rows = "(SELECT array_sort(collect_list(concat(id, name))) FROM shop.S1.sold)"
    run(f"{derby(tmp_path)}ASSERT {rows} = array('1n1', '3n3', '4n4')")
    assert [each.name for each in (tmp_path / "checkpoints" / "job").iterdir()] == ["shop.s1.sold"]


def test_rows_that_do_not_fit_count_where_the_stream_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    rule = "(id INT, CONSTRAINT two EXPECT (id <> 2) ON VIOLATION DROP ROW)"
    script = derby(tmp_path) + source(tmp_path, 1, 2).replace("(id INT)", rule)
    script = f"SET job.mode = 'available-now';\n{script}INSERT INTO shop.S1.sold SELECT id, 'a' FROM src;"
    bad = list[dict[str, Any]]()
    (result,) = execute(spark, plan_of(script, tmp_path), lambda _: None, bad_rows=bad)
    assert (result["rows"], [(each["table"], each["rows"], each["dropped"]) for each in bad]) == (
        1,
        [("src", 2, 1)],
    )


def test_two_streams_add_to_one_table_one_after_the_other(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, both, inside = threading.Lock(), threading.Event(), [0]
    added = CatalogSink._add  # noqa: SLF001 - to look at the write

    def watched(self: CatalogSink, session: SparkSession) -> None:
        with guard:
            inside[0] += 1
            if inside[0] > 1:
                both.set()
        both.wait(2)  # time for the other stream to come, if nothing keeps it
        added(self, session)
        with guard:
            inside[0] -= 1

    def look() -> None:
        streams = control.shown().get("streams", {})
        if sum(each.get("total_rows", 0) for each in streams.values()) == 4:
            control.stopping.set()

    monkeypatch.setattr(CatalogSink, "_add", watched)
    control = StreamControl(look)
    run(
        f"{STREAMING}{derby(tmp_path)}{source(tmp_path, 1, 2)}"
        "INSERT INTO shop.S1.sold SELECT id, 'a' FROM src; INSERT INTO shop.S1.sold SELECT id, 'b' FROM src;",
        control,
    )
    assert not both.is_set()
    rows = "(SELECT array_sort(collect_list(concat(id, name))) FROM shop.S1.sold)"
    run(f"{derby(tmp_path)}ASSERT {rows} = array('1a', '1b', '2a', '2b')")


SET = """CREATE TABLE out (id INT) USING json OPTIONS (path 'out');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO out SELECT id FROM src;
  INSERT INTO shop.S1.sold BY NAME SELECT concat('n', id) AS name, id FROM src WHERE id <> 2;
  INSERT INTO shop.S1.sold TABLE marked;
END;
"""
MARKED = "CREATE VIEW marked AS SELECT -id AS id, 'minus' AS name FROM src WHERE id > 2;\n"


@pytest.mark.parametrize("mode", ["available-now", "streaming"])
def test_a_set_reads_a_stream_once_for_tables_of_catalogs_and_of_files(
    run: Run, tmp_path: Path, mode: str
) -> None:
    source(tmp_path, 1, 2)

    def look() -> None:
        shown = control.shown().get("streams", {})
        rows = {name: each.get("total_rows") for name, each in shown.items()}
        if mode == "streaming" and rows == expected:
            control.stopping.set()

    expected = {"out": 4, "shop.S1.sold": 3, "shop.S1.sold,2": 2}
    control = StreamControl(look)
    head = STREAMING if mode == "streaming" else "SET job.mode = 'available-now';\n"
    after = "" if mode == "streaming" else "INSERT INTO shop.S1.sold SELECT 9, 'other' FROM src WHERE id = 1;"
    results = run(f"{head}{derby(tmp_path)}{source(tmp_path, 3, 4)}{MARKED}{SET}{after}", control)
    assert [(each["target"], each["connector"], each["rows"], each["line"]) for each in results[:3]] == [
        *(("out", "json", 4, 10), ("shop.S1.sold", "catalog", 3, 11)),
        ("shop.S1.sold", "catalog", 2, 12),
    ]
    assert sorted(written(tmp_path)) == [1, 2, 3, 4]
    check_sold(run, tmp_path, "-3minus", "-4minus", "1n1", "3n3", "4n4", *(["9other"] if after else []))
    folders = {each.name for each in (tmp_path / "checkpoints" / "job").iterdir()}
    assert folders == {"out,set", "shop.s1.sold"} - ({"shop.s1.sold"} if not after else set())


def test_an_insert_of_a_set_leaves_what_it_shares_in_the_cache(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, write = list[bool](), CatalogSink.write

    def watched(self: CatalogSink, frame: DataFrame, *rest: Any) -> Any:
        found.append(frame.storageLevel.useMemory)
        return write(self, frame, *rest)

    monkeypatch.setattr(CatalogSink, "write", watched)
    run(
        f"""SET job.mode = 'available-now'; {derby(tmp_path)}{source(tmp_path, 1, 2)}
        CREATE VIEW v AS SELECT id, 'a' AS name FROM src;
        BEGIN STATEMENT SET; INSERT INTO shop.S1.sold TABLE v; INSERT INTO shop.S1.sold TABLE v; END;"""
    )
    assert found == [True, True]
    check_sold(run, tmp_path, "1a", "1a", "2a", "2a")


KILLS = [("before the write", ""), ("within the write", "/out"), ("within the write", "sold")]


@pytest.mark.parametrize(("point", "place"), sample(KILLS, 1, "kills of sets with tables of catalogs"))
def test_a_killed_driver_of_a_set_loses_no_row_and_repeats_those_of_catalogs_alone(
    run: Run, tmp_path: Path, point: str, place: str
) -> None:
    made = derby(tmp_path).replace("memory:", f"{tmp_path}/")  # it outlives its driver
    sources = source(tmp_path, 1, 2) + source(tmp_path, 3, 4).partition("\n")[2]
    script = f"SET job.mode = 'available-now';\n{made}{sources}{MARKED}{SET}"
    command = [sys.executable, "-m", "tests.stream_driver", str(tmp_path), "1", point, place]
    killed = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
    killed.communicate(script, timeout=240)
    assert killed.returncode == -signal.SIGKILL
    # The JVM of a dead driver ends soon; until then the database is locked.
    wait_until(lambda: not is_there(killed.pid), 60, "the JVM has ended")
    assert sorted(written(tmp_path)) == ([1, 2] if point == "before the write" else [1, 2, 3, 4])
    run(script)
    assert sorted(written(tmp_path)) == [1, 2, 3, 4], "a table of files has each row once"
    twice = ["3n3", "4n4"] if place == "sold" else []
    rows = sorted(["-3minus", "-4minus", "1n1", "3n3", "4n4", *twice])
    check_sold(run, tmp_path, *rows, made=made)


def test_an_insert_of_a_set_of_streams_reads_no_table_that_another_one_writes(
    run: Run, tmp_path: Path
) -> None:
    script = f"""SET job.mode = 'available-now'; SET spark.sql.ansi.doubleQuotedIdentifiers = true;
{derby(tmp_path)}{source(tmp_path, 1)}CREATE TABLE out (id INT) USING json OPTIONS (path 'out');
BEGIN STATEMENT SET;
INSERT INTO out SELECT src.id FROM src LEFT JOIN "shop"."S1"."sold" AS o USING (id);
INSERT INTO shop.S1.sold SELECT id, 'a' FROM src;
END;"""
    with pytest.raises(SqlError, match=r"reads 'shop\.S1\.sold', which an INSERT of the same set") as refused:
        run(script)
    assert refused.value.line == 9
    assert not written(tmp_path)


def test_a_wrong_insert_of_a_set_is_an_error_before_the_stream_begins(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    for query, message in (
        ("SELECT id FROM src", "NOT_ENOUGH_DATA_COLUMNS"),
        ("SELECT id, nme FROM src", "UNRESOLVED_COLUMN"),
        ("SELECT id, 'a' FROM (SELECT id FROM src LIMIT 5)", "write this INSERT outside of the set"),
    ):
        script = f"SET job.mode = 'available-now';\n{derby(tmp_path)}{source(tmp_path, 1)}"
        script += "CREATE TABLE out (id INT) USING json OPTIONS (path 'out');\nBEGIN STATEMENT SET;"
        script += f"INSERT INTO out SELECT id FROM src;\nINSERT INTO shop.S1.sold {query}; END;"
        with pytest.raises(SqlError, match=message) as refused:
            run(script)
        assert refused.value.line == 9
        report = analyse_script(spark, plan_of(script, tmp_path), connect=True)
        assert [(each["line"], message in each["message"]) for each in report["errors"]] == [(9, True)]
    assert not written(tmp_path)


def test_a_wrong_insert_is_an_error_before_the_stream_begins(run: Run, tmp_path: Path) -> None:
    script = f"SET job.mode = 'available-now';\n{derby(tmp_path)}{source(tmp_path, 1)}"
    for query, message in (
        ("SELECT id FROM src", "NOT_ENOUGH_DATA_COLUMNS"),
        ("SELECT id, nme FROM src", "UNRESOLVED_COLUMN"),
        ("SELECT id, 'a' FROM src LEFT ANTI JOIN src AS o USING (id)", "LeftAnti"),
    ):
        with pytest.raises(SqlError, match=message) as refused:
            run(f"{script}INSERT INTO shop.S1.sold {query};")
        assert refused.value.line == 7
    with pytest.raises(SqlError, match="in mode 'available-now' a script adds rows to tables of catalogs"):
        run(f"{script}INSERT OVERWRITE shop.S1.sold SELECT id, 'a' FROM src;")


def test_the_analysis_shows_the_guarantee_and_the_mode(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    run(derby(tmp_path))
    script = (
        f"{STREAMING}{derby(tmp_path)}{source(tmp_path, 1)}INSERT INTO shop.S1.sold SELECT id, 'a' FROM src;"
    )
    for connect in (False, True):
        report = analyse_script(spark, plan_of(script, tmp_path), connect=connect)
        assert report["errors"] == []
        found = report["statements"][-1]
        assert ("skipped" in found, found["mode"], found["trigger_ms"]) == (not connect, "streaming", 200)
        assert found["guarantee"].startswith("at least once: a micro-batch")
