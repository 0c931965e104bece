# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.compiler.streaming_settings import STREAMING_SETTINGS
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

INLINE = """\
CREATE TABLE src (id INT, name STRING, day DATE) WITH ('connector'='inline',
  'rows'='[[1, "a", "2026-01-01"], [2, null, "2026-01-02"], [3, "c d", null]]');
"""
ROWS: list[list[str | None]] = [["1", "a", "2026-01-01"], ["2", None, "2026-01-02"], ["3", "c d", None]]


Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(text: str, *, reports: list[str] | None = None, **variables: str) -> list[dict[str, Any]]:
        plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables=variables)
        # Through JSON, as for a driver.
        return execute(spark, json.loads(json.dumps(plan)), (reports if reports is not None else []).append)

    return run_script


def rows_of(results: list[dict[str, Any]]) -> list[list[str | None]]:
    """The sorted preview of the last INSERT."""
    preview: list[list[str | None]] = results[-1]["preview"]
    return sorted(preview, key=str)


# Connectors


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
def test_each_file_format_gives_back_what_was_written(run: Run, tmp_path: Path, file_format: str) -> None:
    results = run(
        f"""{INLINE}
        CREATE TABLE spark_accent (id INT, name STRING, day DATE) USING {file_format} OPTIONS (path 'out/a');
        CREATE TABLE flink_accent WITH ('connector'='filesystem', 'format'='{file_format}', 'path'='out/b');
        INSERT INTO spark_accent SELECT * FROM src;
        INSERT INTO flink_accent SELECT * FROM spark_accent;
        CREATE TABLE again (id INT, name STRING, day DATE) USING {file_format} OPTIONS (path 'out/b');
        CREATE TABLE shown USING print;
        INSERT INTO shown SELECT *, typeof(id), typeof(day) FROM again;
        """
    )
    assert [result["rows"] for result in results] == [3, 3, 3]
    assert sorted(results[0]["preview"], key=str) == ROWS
    assert rows_of(results) == [[*row, "int", "date"] for row in ROWS]
    first = results[0]
    assert first["target"] == "spark_accent"
    assert first["connector"] == file_format
    assert first["location"] == str(tmp_path / "out" / "a")
    assert first["columns"] == ["id", "name", "day"]
    assert first["line"] == 6
    assert first["seconds"] > 0
    assert json.loads(json.dumps(results)) == results


@pytest.mark.parametrize(
    ("file_format", "codec", "suffix"),
    [
        *[("parquet", codec, "parquet") for codec in ("none", "snappy", "gzip", "zstd", "lz4")],
        *[
            (text, codec, suffix)
            for text in ("csv", "json")
            for codec, suffix in (("none", text), ("gzip", "gz"), ("bzip2", "bz2"), ("deflate", "deflate"))
        ],
    ],
)
def test_every_compression_that_is_offered_works(
    run: Run, tmp_path: Path, file_format: str, codec: str, suffix: str
) -> None:
    results = run(
        f"CREATE TABLE t USING {file_format} OPTIONS (path 'out', compression '{codec}');"
        "INSERT INTO t SELECT 'x' AS a"
    )
    assert results[0]["preview"] == [["x"]]
    assert [path.suffix for path in (tmp_path / "out").glob("part-*")] == [f".{suffix}"]


def test_csv_writes_a_header_and_needs_the_one_that_is_declared(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t USING csv OPTIONS (path 'out'); INSERT INTO t SELECT 1 AS a, 'x,y' AS b")
    (file,) = (tmp_path / "out").glob("part-*.csv")
    assert file.read_text() == 'a,b\n1,"x,y"\n'
    with pytest.raises(SqlError, match="CSV header does not conform to the schema") as caught:
        run("""
        CREATE TABLE t (b STRING, a INT) USING csv OPTIONS (path 'out');
        CREATE TABLE p USING print;
        INSERT INTO p SELECT * FROM t""")
    assert caught.value.line == 4


def test_csv_options_reach_the_file(run: Run, tmp_path: Path) -> None:
    results = run(
        """
        CREATE TABLE t (a INT, b STRING, c STRING)
        USING csv OPTIONS (path 'out', header false, delimiter '\\t', nullValue '-');
        INSERT INTO t VALUES (1, NULL, 'x y');
        CREATE TABLE p USING print;
        INSERT INTO p SELECT a + 1, b IS NULL, c FROM t
        """
    )
    (file,) = (tmp_path / "out").glob("part-*.csv")
    assert file.read_text() == "1\t-\tx y\n"
    assert results[1]["preview"] == [["2", "true", "x y"]]


@pytest.mark.parametrize(
    ("file_format", "content"), [("csv", "a,b\n1,x\nzwei,y\n"), ("json", '{"a": 1}\n{"a": "zwei"}\n')]
)
def test_a_record_that_does_not_fit_fails_instead_of_becoming_null(
    run: Run, tmp_path: Path, file_format: str, content: str
) -> None:
    (tmp_path / "in").write_text(content)
    columns = "a INT, b STRING" if file_format == "csv" else "a INT"
    with pytest.raises(SqlError, match=r"table 't': a record of '.*/in' does not fit .*zwei"):
        run(
            f"CREATE TABLE t ({columns}) USING {file_format} OPTIONS (path 'in');"
            "CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"
        )


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("_in.csv", "_in.csv"),
        (".in.csv", "./.in.csv"),
        ("_in.csv", "_*.csv"),
        ("in._COPYING_", "in._COPYING_"),
    ],
)
def test_a_file_that_spark_leaves_out_for_its_name_is_refused_instead_of_read_as_empty(
    run: Run, tmp_path: Path, name: str, path: str
) -> None:
    (tmp_path / name).write_text("a,b\n1,x\n")
    text = (
        f"CREATE TABLE t (a INT, b STRING) USING csv OPTIONS (path '{path}');"
        "CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"
    )
    for mode in ("batch", "available-now"):
        with pytest.raises(SqlError, match=r"table 't': Spark leaves out the file '.*', because its name"):
            run(f"SET job.mode = '{mode}'; {text}")


def test_a_byte_order_mark_is_no_part_of_the_first_column(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_bytes("\ufeffa;b\r\n1;x\r\n".encode())
    results = run(
        "CREATE TABLE t (a INT, b STRING) USING csv OPTIONS (path 'in', delimiter ';');"
        "CREATE TABLE p USING json OPTIONS (path 'out'); INSERT INTO p SELECT * FROM t"
    )
    assert rows_of(results) == [["1", "x"]]


@pytest.mark.parametrize("folder", ["_in", ".in", "_in/"])
def test_a_folder_of_such_a_name_is_read(run: Run, tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "1.csv").write_text("a,b\n1,x\n")
    results = run(
        f"CREATE TABLE t (a INT, b STRING) USING csv OPTIONS (path '{folder}');"
        "CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"
    )
    assert rows_of(results) == [["1", "x"]]


def test_json_keeps_columns_that_are_null(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t USING json OPTIONS (path 'out'); INSERT INTO t SELECT 1 AS a, CAST(NULL AS INT) AS b")
    (file,) = (tmp_path / "out").glob("part-*.json")
    assert json.loads(file.read_text()) == {"a": 1, "b": None}


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
def test_partitions_become_directories(run: Run, tmp_path: Path, file_format: str) -> None:
    results = run(
        f"""
        CREATE TABLE t USING {file_format} OPTIONS (path 'out', partition_by 'month, Day');
        INSERT INTO t VALUES (1, 2, 'x'), (1, 3, 'y') AS v(month, day, what);
        """
    )
    assert sorted(path.parent.name for path in tmp_path.glob("out/month=1/*/part-*")) == ["Day=2", "Day=3"]
    assert rows_of(results) == [["1", "2", "x"], ["1", "3", "y"]]


def test_print_shows_a_table_on_standard_output(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    results = run(
        """
        CREATE TABLE p USING print OPTIONS (limit 2);
        INSERT INTO p SELECT id AS n, CASE WHEN id = 0 THEN 'two\\nlines' END AS n FROM range(0, 9, 1, 1);
        """
    )
    assert capsys.readouterr().out == (
        "n | n\n--+-----------\n0 | two\\nlines\n1 | NULL\nonly the first 2 rows are shown\n"
    )
    assert (results[0]["rows"], results[0]["location"]) == (2, "")


def test_an_empty_result_is_written_too(run: Run) -> None:
    results = run(
        "CREATE TABLE t USING parquet OPTIONS (path 'out'); INSERT INTO t SELECT 1 AS a WHERE false;"
        "CREATE TABLE p USING print; INSERT INTO p SELECT count(*) FROM t"
    )
    assert (results[0]["rows"], results[0]["preview"], results[1]["preview"]) == (0, [], [["0"]])


def test_long_cells_of_a_preview_are_cut(run: Run) -> None:
    results = run(
        "CREATE TABLE t USING parquet OPTIONS (path 'out'); INSERT INTO t SELECT repeat('x', 61) AS a"
    )
    assert results[0]["preview"] == [["x" * 59 + "…"]]


# Reading of written tables


def test_views_see_what_was_written_after_they_were_made(run: Run) -> None:
    first = "CREATE TABLE t USING parquet OPTIONS (path 'out'); INSERT INTO t SELECT 'old' AS a, 'gone' AS b;"
    run(first)
    results = run(
        """
        CREATE TABLE t USING parquet OPTIONS (path 'out');
        CREATE VIEW v AS SELECT a FROM t;
        CREATE OR REPLACE VIEW v AS SELECT concat(a, '!') AS a FROM v;
        CREATE TABLE p USING print;
        INSERT INTO p SELECT * FROM v;
        INSERT OVERWRITE t SELECT 'new' AS a;
        INSERT INTO p SELECT * FROM v;
        INSERT INTO p SELECT * FROM t;
        """
    )
    assert [result["preview"] for result in results if result["target"] == "p"] == [
        [["old!"]],
        [["new!"]],
        [["new"]],
    ]


# Declared columns of a target


def test_columns_are_cast_by_position_or_by_name(run: Run) -> None:
    results = run(
        """
        CREATE TABLE t (a BIGINT, b DECIMAL(4, 1)) USING parquet OPTIONS (path 'out');
        INSERT INTO t SELECT '7' AS x, 1.25 AS x;
        INSERT INTO t BY NAME SELECT 2 AS B, 8 AS a;
        CREATE TABLE p USING print;
        INSERT INTO p SELECT *, typeof(a), typeof(b) FROM t ORDER BY a;
        """
    )
    assert results[0]["columns"] == ["a", "b"]
    assert results[2]["preview"] == [
        ["7", "1.3", "bigint", "decimal(4,1)"],
        ["8", "2.0", "bigint", "decimal(4,1)"],
    ]


@pytest.mark.parametrize(
    ("insert", "message"),
    [
        ("INSERT INTO t SELECT 1 AS x", r"the query has 1 columns \(x\), the table declares 2 \(id, name\)"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 'x' AS nam", "has no column 'name'; did you mean 'nam'"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 'x' AS name, 2 AS z", "declares no column 'z'"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 'x' AS name, 2 AS ID", "column 'id' more than once"),
        ("INSERT INTO t SELECT array(1), 'x'", "DATATYPE_MISMATCH"),
        ("INSERT INTO t SELECT 'one', 'x'", "CAST_INVALID_INPUT"),
        ("INSERT INTO t SELECT NULL, 'x'", "column 'id' is NOT NULL"),
    ],
)
def test_columns_that_do_not_fit_are_refused_at_the_insert(
    run: Run, tmp_path: Path, insert: str, message: str
) -> None:
    head = "CREATE TABLE t (id INT NOT NULL, name STRING)\n USING parquet OPTIONS (path 'out');\n "
    with pytest.raises(SqlError, match=message) as caught:
        run(head + insert)
    assert (caught.value.line, caught.value.column) == (3, 2)
    assert "table 't'" in caught.value.message
    assert not list(tmp_path.glob("out/part-*"))


def test_subqueries_of_every_kind_may_stand_in_an_insert(run: Run) -> None:
    results = run(
        f"""{INLINE}
        CREATE TABLE t USING parquet OPTIONS (path 'out');
        INSERT INTO t
        SELECT
          a.id,
          (SELECT max(b.name) FROM src b WHERE b.id = a.id) AS correlated,
          (SELECT count(*) FROM src) AS plain,
          l.more
        FROM src a, LATERAL (SELECT a.id + 1 AS more) l
        WHERE EXISTS (SELECT * FROM src c WHERE c.id = a.id AND c.day IS NOT NULL)
          AND a.id IN (SELECT id FROM src d WHERE d.id = a.id) AND a.id NOT IN (SELECT 7);
        """
    )
    assert rows_of(results) == [["1", "a", "3", "2"], ["2", None, "3", "3"]]


def test_a_relative_path_where_the_folder_of_the_definition_is_not_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = "-- out\nCREATE TABLE t USING csv OPTIONS (path 'out');\nINSERT INTO t SELECT 1 AS a"
    plan = compile_script(text, file="s.sql", base_dir=str(tmp_path / "elsewhere"), variables={})
    words = rf"table 't': relative paths mean the folder of .*, which is not on .*: {tmp_path}/elsewhere"
    with pytest.raises(SqlError, match=words) as caught:
        execute(spark, plan, lambda _: None)
    assert caught.value.line == 2
    assert list(tmp_path.iterdir()) == []


# Settings, names, variables


def test_settings_and_names_end_with_the_script(run: Run, spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    results = run(
        """
        SET spark.sql.session.timeZone = Asia/Tokyo;
        CREATE VIEW v AS SELECT current_timezone() AS zone;
        CREATE TABLE p USING print;
        INSERT INTO p SELECT * FROM v;
        """
    )
    assert results[0]["preview"] == [["Asia/Tokyo"]]
    assert spark.conf.get("spark.sql.session.timeZone") == before
    assert "v" not in [table.name for table in spark.catalog.listTables()]


def test_reset_restores_the_setting_of_the_session_and_not_that_of_spark(
    run: Run, spark: SparkSession
) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    results = run(
        """
        CREATE TABLE p USING print;
        SET 'table.local-time-zone' = 'Asia/Tokyo';
        INSERT INTO p SELECT current_timezone();
        RESET 'table.local-time-zone';
        INSERT INTO p SELECT current_timezone();
        SET spark.sql.session.timeZone = Europe/Paris;
        SET spark.sql.session.timeZone = UTC;
        SET spark.sql.ansi.enabled = false;
        RESET spark.sql.shuffle.partitions;
        RESET spark.no.such.setting;
        INSERT INTO p SELECT concat(current_timezone(), CAST('x' AS INT) IS NULL);
        RESET;
        INSERT INTO p SELECT current_timezone();
        """
    )
    assert [result["preview"] for result in results] == [
        *([["Asia/Tokyo"]], [[before]], [["UTCtrue"]], [[before]]),
    ]
    with pytest.raises(SqlError, match="CAST_INVALID_INPUT"):
        run(
            "CREATE TABLE p USING print; SET spark.sql.ansi.enabled = false; RESET spark.sql.ansi.enabled;"
            "INSERT INTO p SELECT CAST('x' AS INT)"
        )


def test_a_mapped_setting_has_the_effect_of_sparks_own(run: Run) -> None:
    results = run(
        """
        CREATE TABLE p USING print;
        SET spark.sql.adaptive.enabled = false;
        SET parallelism.default = 7;
        INSERT INTO p SELECT count(DISTINCT part) FROM (
          SELECT spark_partition_id() AS part FROM (SELECT /*+ REPARTITION(id) */ id FROM range(1000)));
        RESET parallelism.default;
        INSERT INTO p SELECT count(DISTINCT part) FROM (
          SELECT spark_partition_id() AS part FROM (SELECT /*+ REPARTITION(id) */ id FROM range(1000)));
        """
    )
    assert [result["preview"] for result in results] == [[["7"]], [["2"]]]


def test_each_setting_of_spark_that_the_compiler_names_exists(spark: SparkSession) -> None:
    texts = " ".join(f"{setting.becomes} {setting.instead}" for setting in STREAMING_SETTINGS)
    named = set(re.findall(r"spark\.(?:\w+\.)+\w+", texts))
    assert len(named) > 10
    java: Any = spark._jvm  # noqa: SLF001 - as the rest of PySpark has it
    known = java.org.apache.spark.internal.config.ConfigEntry
    assert {key for key in named if known.findEntry(key) is None} == set()
    assert known.findEntry("spark.sql.noSuchSetting") is None


def test_names_of_any_kind_and_replaced_ones_work(run: Run) -> None:
    results = run(
        """
        CREATE TABLE `a ``b` (x INT) USING inline OPTIONS (rows '[[1]]');
        CREATE OR REPLACE TABLE `A ``B` (x INT) USING inline OPTIONS (rows '[[2]]');
        CREATE VIEW `v w` AS SELECT * FROM `a ``b`;
        CREATE OR REPLACE TEMPORARY VIEW `v w` AS SELECT x * 10 AS x FROM `a ``b`;
        CREATE TABLE p USING print;
        INSERT INTO p SELECT * FROM `v w`;
        """
    )
    assert results[0]["preview"] == [["20"]]


def test_the_environment_of_the_driver_stays_out_of_reach(run: Run) -> None:
    results = run("CREATE TABLE p USING print; INSERT INTO p SELECT '${x}', '\\${env:HOME}'", x="${env:HOME}")
    assert results[0]["preview"] == [["${env:HOME}", "${env:HOME}"]]


def test_values_arrive_in_spark_as_they_were_given(run: Run) -> None:
    values = ["it's", 'say "hi"', "\\", "a\nb", "${x}", "100\\%", "'); DROP TABLE t; --"]
    variables = {f"x{number}": value for number, value in enumerate(values)}
    columns = ", ".join(f"'${{{name}}}' AS {name}" for name in variables)
    results = run(
        f"CREATE TABLE t USING json OPTIONS (path 'out'); INSERT INTO t SELECT {columns}", **variables
    )
    assert results[0]["preview"] == [values]


def test_every_step_that_takes_time_is_reported(run: Run) -> None:
    reports: list[str] = []
    run(
        f"{INLINE} CREATE VIEW v AS SELECT 1; CREATE TABLE p USING print;"
        "INSERT INTO p SELECT 1; INSERT OVERWRITE p SELECT 2",
        reports=reports,
    )
    assert reports == ["CREATE TABLE src", "INSERT INTO p (1 of 2)", "INSERT OVERWRITE p (2 of 2)"]
