# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Computed and metadata columns and expectations, run by Spark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    (tmp_path / "in.csv").write_text("id,price,ts\n1,10.5,2026-01-02 03:04:05\n2,-1,2026-01-03 00:00:00\n")

    def run_script(text: str) -> list[dict[str, Any]]:
        plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables={})
        return execute(spark, json.loads(json.dumps(plan)), lambda _phase: None)

    return run_script


STORED = "id INT, price DECIMAL(6, 2), ts TIMESTAMP"


def declared(columns: str) -> str:
    return f"CREATE TABLE src ({columns}) USING csv OPTIONS (path 'in.csv');\nCREATE TABLE p USING print;\n"


def test_readers_see_all_columns_in_the_order_of_their_declaration(run: Run, tmp_path: Path) -> None:
    columns = (
        "id INT, total AS price * 2, price DECIMAL(6, 2), file STRING METADATA FROM 'file.path',"
        "day STRING GENERATED ALWAYS AS (CAST(ts AS DATE)), ts TIMESTAMP NOT NULL, twice AS total + id,"
        "size INT NOT NULL METADATA FROM 'file_size' COMMENT 'bytes',"
        "WATERMARK FOR ts AS ts - INTERVAL 1 DAY,"
        "PRIMARY KEY (id) NOT ENFORCED"
    )
    (result,) = run(
        f"{declared(columns)}INSERT INTO p SELECT *, typeof(day), typeof(size) FROM src WHERE id = 1"
    )
    assert result["columns"][:8] == ["id", "total", "price", "file", "day", "ts", "twice", "size"]
    (row,) = result["preview"]
    size = str((tmp_path / "in.csv").stat().st_size)
    assert row[:3] == ["1", "21.00", "10.50"]
    assert row[4:] == ["2026-01-02", "2026-01-02 03:04:05", "22.00", size, "string", "int"]
    (found,) = run(
        f"{declared(columns)}INSERT INTO p SELECT count(*) FROM src WHERE file LIKE 'file:%/in.csv'"
    )
    assert found["preview"] == [["2"]]


def test_columns_that_are_not_stored_are_not_written(run: Run) -> None:
    results = run(
        f"""{declared(STORED)}
        CREATE TABLE t (id INT, twice AS id * 2) USING parquet OPTIONS (path 'out');
        INSERT INTO t SELECT id FROM src;
        INSERT INTO p SELECT id, twice FROM t ORDER BY id;
        CREATE TABLE again USING parquet OPTIONS (path 'out');
        INSERT INTO p SELECT * FROM again ORDER BY id;
        """
    )
    assert [result["preview"] for result in results[1:]] == [[["1", "2"], ["2", "4"]], [["1"], ["2"]]]


@pytest.mark.parametrize("condition", ["price > 0", "id < 2", "nullif(id, 2) > 0"])
@pytest.mark.parametrize("use", ["count(*)", "id", "1"])
def test_a_row_that_violates_an_expectation_fails_the_read_whatever_the_query_uses(
    run: Run, condition: str, use: str
) -> None:
    columns = f"{STORED}, CONSTRAINT c EXPECT ({condition}) ON VIOLATION FAIL"
    with pytest.raises(SqlError, match=r"a row of table 'src' violates 'c': ") as caught:
        run(f"{declared(columns)}INSERT INTO p SELECT {use} FROM src")
    assert caught.value.line == 3
    accepted = columns.replace(condition, "id > 0")
    rows = run(f"{declared(accepted)}INSERT INTO p SELECT {use} FROM src")[0]["rows"]
    assert rows == (1 if use == "count(*)" else 2)


def test_a_row_that_violates_an_expectation_of_a_target_is_not_written(run: Run, tmp_path: Path) -> None:
    target = "CREATE TABLE t (id INT, CONSTRAINT c EXPECT (id < 2) ON VIOLATION FAIL) USING parquet "
    script = f"{declared(STORED)}{target}OPTIONS (path 'out');\nINSERT INTO t SELECT id FROM src"
    with pytest.raises(SqlError, match="a row of table 't' violates 'c': id < 2"):
        run(script)
    assert not (tmp_path / "out").exists()
    assert run(f"{script} WHERE id < 2")[0]["rows"] == 1


@pytest.mark.parametrize(
    ("columns", "line", "column", "message"),
    [
        (f"{STORED},\n  total AS prize * 2", 2, 12, "prize"),
        (f"{STORED},\n  total AS price * * 2", 2, 22, "Syntax error"),
        (f"{STORED},\n  CONSTRAINT c EXPECT (prize > 0) ON VIOLATION FAIL", 2, 24, "prize"),
    ],
)
def test_an_error_in_a_declaration_points_at_its_place(
    run: Run, columns: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        run(f"{declared(columns)}INSERT INTO p SELECT * FROM src")
    assert (caught.value.line, caught.value.column) == (line, column)


def test_group_windows_of_streaming_engines_give_the_rows_of_sparks(run: Run) -> None:
    (result,) = run(
        f"""SET spark.sql.session.timeZone = UTC;
        {declared(f"{STORED}, proc AS PROCTIME()")}
        INSERT INTO p
        SELECT TUMBLE_START(ts, INTERVAL '1' DAY) AS s, TUMBLE_ROWTIME(ts, INTERVAL '1' DAY) AS r, count(*),
          max(proc) > TIMESTAMP'2026-01-01 00:00:00'
        FROM src GROUP BY TUMBLE(ts, INTERVAL '1' DAY) ORDER BY s
        """
    )
    assert result["preview"] == [
        ["2026-01-02 00:00:00", "2026-01-02 23:59:59.999", "1", "true"],
        ["2026-01-03 00:00:00", "2026-01-03 23:59:59.999", "1", "true"],
    ]
    (result,) = run(
        f"""SET spark.sql.session.timeZone = UTC;
        {declared(STORED)}
        INSERT INTO p SELECT count(*), min(s), max(e) FROM (
          SELECT HOP_START(ts, INTERVAL '12' HOUR, INTERVAL '1' DAY) AS s,
            HOP_END(ts, INTERVAL '12' HOUR, INTERVAL '1' DAY) AS e
          FROM src GROUP BY HOP(ts, INTERVAL '12' HOUR, INTERVAL '1' DAY))
        """
    )
    assert result["preview"] == [["4", "2026-01-01 12:00:00", "2026-01-04 00:00:00"]]
    (result,) = run(
        f"SET spark.sql.session.timeZone = UTC; {declared(STORED)}"
        "INSERT INTO p SELECT SESSION_END(ts, INTERVAL '2' DAYS), count(*)"
        " FROM src GROUP BY SESSION(ts, INTERVAL '2' DAYS)"
    )
    assert result["preview"] == [["2026-01-05 00:00:00", "2"]]


def test_an_error_behind_a_rewritten_window_points_at_its_place(run: Run) -> None:
    window = "(ts, INTERVAL '1' DAY)"
    query = f"SELECT TUMBLE_START{window}, prize FROM src GROUP BY TUMBLE{window}, prize"
    with pytest.raises(SqlError, match="prize") as caught:
        run(f"{declared(STORED)}INSERT INTO p {query}")
    assert (caught.value.line, caught.value.column) == (3, len("INSERT INTO p ") + query.index("prize") + 1)


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    "query", ["* FROM t WHERE id > 0", "n FROM t WHERE id = 1", "count(*) FROM t WHERE n <> 2"]
)
def test_a_filter_of_a_query_does_not_hide_a_violation(run: Run, file_format: str, query: str) -> None:
    with pytest.raises(SqlError, match="a row of table 't' violates 'c': id > 0"):
        run(
            f"""
            CREATE TABLE raw (id INT, n INT) USING {file_format} OPTIONS (path 'raw');
            INSERT INTO raw VALUES (1, 1), (-5, 2), (7, 3);
            CREATE TABLE t (id INT, n INT, CONSTRAINT c EXPECT (id > 0) ON VIOLATION FAIL)
              USING {file_format} OPTIONS (path 'raw');
            SELECT {query};
            """
        )


def test_existing_rows_of_a_table_that_the_script_also_writes_are_checked(run: Run) -> None:
    with pytest.raises(SqlError, match="a row of table 't' violates 'c'"):
        run(
            """
            CREATE TABLE raw (id INT) USING csv OPTIONS (path 'raw');
            INSERT INTO raw VALUES (-1);
            CREATE TABLE t (id INT, CONSTRAINT c EXPECT (id > 0) ON VIOLATION FAIL)
              USING csv OPTIONS (path 'raw');
            SELECT * FROM t;
            INSERT INTO t VALUES (9);
            """
        )


def test_an_expectation_of_a_computed_column_is_checked_before_the_write(run: Run) -> None:
    script = """
        CREATE TABLE t (id INT, twice AS id * 2, CONSTRAINT c EXPECT (twice < 10) ON VIOLATION FAIL)
          USING csv OPTIONS (path 'out');
        """
    (result,) = run(f"{script}INSERT INTO t VALUES (4)")
    assert (result["rows"], result["columns"]) == (1, ["id"])
    with pytest.raises(SqlError, match="a row of table 't' violates 'c': twice < 10"):
        run(f"{script}INSERT INTO t VALUES (5)")


def test_metadata_columns_do_not_disturb_the_comparison_of_inserts(run: Run) -> None:
    results = run(
        """
        CREATE TABLE t (a INT, f STRING METADATA FROM 'file_name') USING parquet OPTIONS (path 'out');
        INSERT INTO t VALUES (1);
        INSERT INTO t VALUES (2);
        CREATE TABLE p USING print;
        INSERT INTO p SELECT a, f LIKE 'part-%' FROM t ORDER BY a;
        """
    )
    assert results[-1]["preview"] == [["1", "true"], ["2", "true"]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("a INT, f FOO METADATA FROM 'file_name'", "FOO"),
        ("a INT, _metadata INT, f INT METADATA FROM 'file_name'", "_metadata"),
    ],
)
def test_metadata_that_spark_refuses_is_an_error_with_its_place(run: Run, columns: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        run(
            f"""
            CREATE TABLE t ({columns}) USING csv OPTIONS (path 'in.csv'); SELECT * FROM t"""
        )
    assert caught.value.line == 2


def test_a_table_has_the_columns_that_it_declares_and_no_partitions_of_its_folder(run: Run) -> None:
    made = "CREATE TABLE made USING parquet OPTIONS (path 'parts', partition_by 'day');"
    run(f"{made} INSERT INTO made SELECT 'x' AS day, 1 AS id, 2 AS n")
    shown = "CREATE TABLE shown USING print; INSERT INTO shown SELECT * FROM t"
    for columns, expected in (("id INT", ["id"]), ("day STRING, n INT", ["day", "n"])):
        table = f"CREATE TABLE t ({columns}) USING parquet OPTIONS (path 'parts')"
        assert run(f"{table}; {shown}")[0]["columns"] == expected
    with pytest.raises(SqlError, match="day"):
        run("CREATE TABLE t (id INT) USING parquet OPTIONS (path 'parts'); SELECT day FROM t")


def test_char_and_varchar_are_strings_whose_lengths_are_not_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text('{"a":"abcdef","b":["ab"],"c":{"d":"xyz"}}')
    columns = "a VARCHAR(3), b ARRAY<CHAR(4)>, c STRUCT<d: CHARACTER(2)>"
    stored, read = run(
        f"CREATE TABLE names ({columns}) USING json OPTIONS (path 'names.json');"
        f"CREATE TABLE kept ({columns}) USING parquet OPTIONS (path 'kept');"
        "INSERT INTO kept SELECT * FROM names; CREATE TABLE p USING print;"
        "INSERT INTO p SELECT typeof(a), length(b[0]) FROM kept"
    )
    assert stored["preview"] == [["abcdef", "[ab]", "{xyz}"]]
    assert read["preview"] == [["string", "2"]]
