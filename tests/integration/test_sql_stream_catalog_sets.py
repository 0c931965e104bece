# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statement sets that write tables of Spark catalogs, in the modes that stream."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.catalog_sink import CatalogSink
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.catalog_support import STREAMING, Run, derby, ends, scripts_in, source
from tests.sampling import sample
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return scripts_in(spark, tmp_path)


def written(folder: Path) -> list[int]:
    files = (folder / "out").glob("part-*")
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


def check_sold(run: Run, folder: Path, *rows: str, made: str = "") -> None:
    """The rows of the table, in order."""
    found = "(SELECT array_sort(collect_list(concat(id, name))) FROM shop.S1.sold)"
    run(f"{made or derby(folder)}ASSERT {found} = array({', '.join(map(repr, rows))})")


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
    ends(killed.pid)
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
