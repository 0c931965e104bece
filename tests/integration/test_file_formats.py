# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""ORC, lines of text, and the size of written files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

Run = Callable[[str], list[dict[str, Any]]]
LINES = "CREATE TABLE t (line STRING) USING text OPTIONS (path 'out');\n"
TYPES = """
  1S AS a, CAST(-12345.678 AS DECIMAL(12, 3)) AS b, DATE '2026-01-02' AS c,
  TIMESTAMP '2026-01-02 03:04:05.123456' AS d, TIMESTAMP_NTZ '2026-01-02 03:04:05.123456' AS e, X'00ff' AS f,
  array(1, null) AS g, map('k', struct(1 AS x)) AS h, true AS i, CAST(null AS STRING) AS j
"""


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


def test_orc_keeps_values_of_all_types(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    results = run(
        f"""CREATE TABLE t WITH ('connector' = 'filesystem', 'format' = 'orc', 'path' = 'out');
        CREATE TABLE p WITH ('connector' = 'parquet', 'path' = 'copy');
        INSERT INTO t SELECT {TYPES}; INSERT INTO t SELECT {TYPES}; INSERT INTO p TABLE t;"""
    )
    given = spark.sql(f"SELECT {TYPES}")
    assert [each["rows"] for each in results] == [1, 1, 2]
    assert results[0]["preview"][0][3] == "2026-01-02 03:04:05.123456"
    found = spark.read.parquet(str(tmp_path / "copy"))
    assert found.dtypes == given.dtypes
    assert found.collect() == given.collect() * 2


@pytest.mark.parametrize(
    ("second", "words"), [("1L AS a", "a as int, not bigint"), ("1 AS b", r"columns \(b\), in .* are \(a\)")]
)
def test_orc_files_of_other_columns_are_refused(run: Run, second: str, words: str) -> None:
    table = "CREATE TABLE t USING orc OPTIONS (path 'out');\n"
    run(f"{table} INSERT INTO t SELECT 1 AS a")
    with pytest.raises(SqlError, match=words):
        run(f"{table} INSERT INTO t SELECT {second}")


def test_each_row_of_text_is_a_line(run: Run, tmp_path: Path) -> None:
    lines = ["", ' a,"b"\\ ', "ä\tö", "NULL"]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", "utf-8")
    results = run(
        f"""{LINES} CREATE TABLE src USING text OPTIONS (path 'in.txt');
        INSERT INTO t SELECT value FROM src; INSERT INTO t SELECT value AS any_name FROM src"""
    )
    assert [each["rows"] for each in results] == [4, 4]
    assert results[0]["preview"] == [[line] for line in lines]
    files = sorted((tmp_path / "out").glob("part-*.txt"))
    assert [file.read_text("utf-8").split("\n")[:-1] for file in files] == [lines] * 2


def test_partitions_are_columns_besides_the_line(run: Run, tmp_path: Path) -> None:
    table = "CREATE TABLE t (line STRING, day DATE) USING text OPTIONS (path 'out', partition_by 'day');\n"
    results = run(
        f"""{table} CREATE TABLE p USING print;
        INSERT INTO t VALUES ('one', DATE '2026-01-01'), ('two', NULL);
        INSERT INTO p SELECT * FROM t ORDER BY line"""
    )
    assert results[1]["preview"] == [["one", "2026-01-01"], ["two", None]]
    assert len(list((tmp_path / "out").glob("day=2026-01-01/part-*"))) == 1


@pytest.mark.parametrize("value", ["NULL", r"'a\nb'", r"'a\rb'"])
def test_rows_that_are_not_one_line_are_refused(run: Run, tmp_path: Path, value: str) -> None:
    with pytest.raises(SqlError, match="of 3 rows 1 are NULL or have line breaks"):
        run(f"{LINES} INSERT INTO t SELECT IF(id = 1, {value}, 'x') FROM range(3)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("query", ["1 AS a", "'x' AS a, 'y' AS b"])
def test_a_query_of_other_columns_than_one_string_is_refused(
    run: Run, spark: SparkSession, tmp_path: Path, query: str
) -> None:
    script = f"CREATE TABLE t USING text OPTIONS (path 'out'); INSERT INTO t SELECT {query}"
    with pytest.raises(SqlError, match="a line of text is one STRING, and the query gives"):
        run(script)
    report = analyse_script(spark, plan_of(script, tmp_path), connect=True)
    assert "a line of text is one STRING" in str(report)


def test_a_stream_adds_each_line_once(run: Run, tmp_path: Path) -> None:
    script = f"""SET job.mode = 'available-now'; {LINES}
    CREATE TABLE src (text STRING) USING text OPTIONS (path 'in');
    INSERT INTO t SELECT upper(text) FROM src"""
    (tmp_path / "in").mkdir()
    for number, rows in enumerate((2, 1, 0)):
        if rows:
            (tmp_path / "in" / f"{number}.txt").write_text("line\n" * rows)
        assert sum(each["rows"] for each in run(script)) == rows
    assert sorted(file.read_text() for file in (tmp_path / "out").glob("part-*")) == [
        "LINE\n",
        "LINE\nLINE\n",
    ]


# Size of files


@pytest.mark.parametrize(
    ("table", "files"),
    [("parquet", 12), ("parquet', target_file_size '10MB", 1), ("csv', target_file_size '1MB", 4)],
)
def test_a_write_has_about_as_many_files_as_their_size_asks_for(
    run: Run, spark: SparkSession, tmp_path: Path, table: str, files: int
) -> None:
    name, _, option = table.partition("', ")
    more = f", {option}'" if option else ""
    (result,) = run(
        f"""CREATE TABLE t USING {name} OPTIONS (path 'out'{more});
        INSERT INTO t SELECT id, uuid() AS text FROM range(0, 100000, 1, 12)"""
    )
    sizes = [file.stat().st_size for file in (tmp_path / "out").glob("part-*")]
    assert files / 2 <= len(sizes) <= files * 2, sizes
    found = spark.read.format(name).option("header", "true").load(str(tmp_path / "out"))
    assert found.select("id").distinct().count() == result["rows"] == 100_000


def test_a_folder_of_a_partition_has_one_file_for_few_rows(run: Run, tmp_path: Path) -> None:
    table = "CREATE TABLE t USING json OPTIONS (path 'out', partition_by 'a,B'{});\n"
    query = "SELECT id, id % 3 AS A, 'x y' AS b FROM range(0, 300, 1, 8)"
    for option, files in (("", 24), (", target_file_size '1MB'", 3)):
        run(table.format(option) + f"INSERT OVERWRITE t {query}")
        assert len(list((tmp_path / "out").glob("*/*/part-*"))) == files


def test_micro_batches_have_few_files_and_the_settings_of_the_session_stay(run: Run, tmp_path: Path) -> None:
    script = """SET job.mode = 'available-now';
    CREATE TABLE src (n BIGINT) USING json OPTIONS (path 'in', max_files_per_trigger 6);
    CREATE TABLE t WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = 'out',
      'compaction.file-size' = '8 MB');
    INSERT INTO t SELECT /*+ REPARTITION(6) */ n FROM src"""
    (tmp_path / "in").mkdir()
    for number in range(12):
        (tmp_path / "in" / f"{number}.json").write_text('{"n": 1}\n' * 50)
    assert run(script)[0]["rows"] == 600
    assert len(list((tmp_path / "out").glob("part-*"))) == 2, "one for each micro-batch"


def test_texts_of_csv_keep_the_spaces_at_their_ends(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t USING csv OPTIONS (path 'out');\nINSERT INTO t SELECT '  a b ' AS word, 1 AS n;")
    lines = [line for file in (tmp_path / "out").glob("*.csv") for line in file.read_text().splitlines()]
    assert "  a b ,1" in lines
    run(
        "CREATE TABLE t (word STRING, n INT) USING csv OPTIONS (path 'out');\n"
        "ASSERT (SELECT word FROM t) = '  a b ', 'as it was written';"
    )
