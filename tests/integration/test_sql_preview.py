# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""The preview of a table or view, in Spark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.preview import preview
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

Preview = Callable[..., dict[str, Any]]
SOURCE = """\
CREATE TABLE src (id INT, name STRING) USING inline OPTIONS (rows '[[1, "a"], [2, null], [3, "ccccc"]]');
"""


@pytest.fixture
def show(spark: SparkSession, tmp_path: Path) -> Preview:
    def show_rows(text: str, name: str, *, rows: int = 20, width: int = 60) -> dict[str, Any]:
        found = check_script(text, file="s.sql", base_dir=str(tmp_path), variables={}, only_declares=True)
        assert not found.errors
        return preview(spark, json.loads(json.dumps(found.plan)), name, rows, width)

    return show_rows


def test_the_first_rows_have_columns_types_and_cut_cells(show: Preview) -> None:
    assert show(SOURCE, "SRC", rows=3, width=4) == {
        "table": "src",
        "columns": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
        "rows": [["1", "a"], ["2", None], ["3", "ccc…"]],
        "has_more": False,
        "filtered": [],
    }
    first = show(SOURCE, "src", rows=2)
    assert len(first["rows"]) == 2
    assert first["has_more"]


@pytest.mark.parametrize("width", range(1, 12))
def test_a_cell_shows_no_part_of_a_secret(show: Preview, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr("spark_runner.protocol.redacted._known", ["qJ7wZ4kX"])
    text = "CREATE TABLE src (a STRING) USING inline OPTIONS (rows '[[\"-qJ7wZ4kX+qJ7wZ4kX\"]]');"
    [[shown]] = show(text, "src", width=width)["rows"]
    assert len(shown) <= width
    assert "-***+***".startswith(shown.removesuffix("…"))
    assert shown == "-***+***" or shown.endswith("…")


def test_settings_and_declarations_apply_and_nothing_else_runs(show: Preview, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    shown = show(
        f"""{SOURCE}
        SET spark.sql.session.timeZone = Asia/Tokyo;
        CREATE TABLE out USING csv OPTIONS (path 'out');
        CREATE TABLE missing USING parquet OPTIONS (path 'missing');
        CREATE VIEW zone AS SELECT current_timezone() AS zone, count(*) AS n FROM src;
        INSERT OVERWRITE out SELECT * FROM zone;
        ASSERT false;
        SELECT raise_error('no');
        SET spark.sql.session.timeZone = Europe/Rome;
        """,
        "zone",
    )
    assert shown["rows"] == [["Asia/Tokyo", "3"]]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_target_shows_the_rows_that_are_there(show: Preview, spark: SparkSession, tmp_path: Path) -> None:
    text = """
        CREATE TABLE out (n INT) USING parquet OPTIONS (path 'out');
        INSERT OVERWRITE out SELECT 2;
        CREATE VIEW doubled AS SELECT n * 2 AS n FROM out;
        INSERT INTO out SELECT 3;
    """
    with pytest.raises(SqlError, match=r"s\.sql:2:9: there are no rows of table 'out' yet"):
        show(text, "out")
    with pytest.raises(SqlError, match="there are no rows of table 'out' yet"):
        show(text, "doubled")
    spark.sql("SELECT 5 AS n").write.parquet(str(tmp_path / "out"))
    assert show(text, "out")["rows"] == [["5"]]
    assert show(text, "doubled")["rows"] == [["10"]]


def test_of_a_name_that_is_declared_again_the_last_meaning_is_shown(show: Preview) -> None:
    text = """
        CREATE VIEW v AS SELECT 1 AS n;
        CREATE VIEW w AS SELECT n + 1 AS n FROM v;
        CREATE OR REPLACE VIEW v AS SELECT n + 10 AS n FROM w;
    """
    assert show(text, "v")["rows"] == [["12"]]


@pytest.mark.parametrize(
    ("query", "marked"),
    [("SELECT nope FROM src", "nope"), ("SELECT id / (id - id) AS x FROM src", "id / (id")],
)
def test_an_error_points_at_its_place_in_the_view(show: Preview, query: str, marked: str) -> None:
    text = f"{SOURCE}CREATE VIEW v AS {query};\nCREATE VIEW w AS SELECT * FROM v;"
    with pytest.raises(SqlError) as caught:
        show(text, "w")
    offset = text.index(marked)
    assert (caught.value.line, caught.value.column) == (2, offset - text.rfind("\n", 0, offset))


def test_a_row_that_violates_an_expectation_is_an_error_as_in_a_run(show: Preview) -> None:
    text = """CREATE TABLE t (id INT, CONSTRAINT small EXPECT (id < 2) ON VIOLATION FAIL)
        USING inline OPTIONS (rows '[[1], [2]]');"""
    with pytest.raises(SqlError, match="violates 'small'"):
        show(text, "t")


def test_a_table_whose_rows_may_be_left_out_is_named(show: Preview) -> None:
    rule = "CONSTRAINT small EXPECT (id < 2) ON VIOLATION DROP ROW"
    shown = show(
        f"""CREATE TABLE src (id INT, {rule}) USING inline OPTIONS (rows '[[1], [2]]');
        CREATE TABLE other (id INT) USING inline OPTIONS (rows '[[1], [2]]');
        CREATE VIEW both AS SELECT id FROM src JOIN other USING (id);""",
        "both",
    )
    assert shown["rows"] == [["1"]]
    assert shown["filtered"] == ["src"]


def test_two_columns_of_one_name_and_large_values_are_shown(show: Preview) -> None:
    shown = show("CREATE VIEW v AS SELECT repeat('é', 1000000) AS a, array(1, 2) AS b;", "v", width=3)
    assert shown["rows"] == [["éé…", "[1…"]]
