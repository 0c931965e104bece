# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Streams into tables of Spark catalogs: a database behind JDBC, and Spark's own."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.catalog_sink import CatalogSink
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.catalog_support import STREAMING, Run, derby, scripts_in, source
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return scripts_in(spark, tmp_path)


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
