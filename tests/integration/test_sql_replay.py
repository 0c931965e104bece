# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Rows of a quarantine that go again: the target is as if they had been good in the first run."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_runner.sql.text.errors import SqlError
from tests.replay_support import Bad, files, rows, run_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LIMIT = "SET job.error.limit.rows = 9;"
SRC = "CREATE TABLE src (id INT, age INT) USING csv OPTIONS (path 'in.csv');"
MENDED = SRC.replace("age INT", "age STRING")
OUT = "CREATE TABLE dst (id INT, age STRING) USING parquet OPTIONS (path 'out');"
MORE = "INSERT INTO more SELECT id FROM src;"
INSERT = "INSERT OVERWRITE dst SELECT * FROM src;"
RAW = "id,age\n1,30\n2,x\n3,5\n,\nfour,44\n"

Run = Callable[..., Bad]


@pytest.fixture
def run(spark: "SparkSession", tmp_path: Path) -> Run:
    """Run a script; returns what it says of bad rows."""
    (tmp_path / "in.csv").write_text(RAW, "utf-8")
    return partial(run_script, spark, tmp_path)


def test_records_are_decoded_again_and_added_to_the_good_rows(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    first = run(LIMIT, SRC, OUT, INSERT)
    assert [(each["rows"], each["quarantined"]) for each in first] == [(5, 2), (3, 0)]
    kept = files(tmp_path / "bad" / "first")
    again = run(LIMIT, MENDED, OUT, INSERT, replays=first, key="again")
    assert rows(spark, tmp_path / "out") == [(1, "30"), (2, "x"), (3, "5"), (None, None)]
    assert [(each["table"], each["rows"], each["quarantined"]) for each in again] == [
        ("src", 2, 1),
        ("dst (line 1)", 1, 0),
    ]
    left = spark.read.parquet(str(tmp_path / "bad" / "again" / "src")).first()
    assert left is not None
    assert (left["record"], left["form"], left["rule"]) == ("four,44", "text", "decoding")
    assert left["file"].endswith("/in.csv"), "the file of the first run"
    assert files(tmp_path / "bad" / "first") == kept


def test_a_further_attempt_of_a_replay_adds_its_rows_once(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    first = run(LIMIT, SRC, OUT, INSERT)
    for attempt in (1, 2):
        run(LIMIT, MENDED, OUT, INSERT, replays=first, key="again", attempt=attempt)
    assert [row[0] for row in rows(spark, tmp_path / "out")] == [1, 2, 3, None]


def test_without_a_limit_a_record_that_still_does_not_fit_fails_the_replay(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    first = run(LIMIT, SRC, OUT, INSERT)
    with pytest.raises(SqlError, match=r"(?i)malformed"):
        run(MENDED, OUT, INSERT, replays=first, key="again")
    assert [row[0] for row in rows(spark, tmp_path / "out")] == [1, 3, None]


VALUES = """SELECT id, CAST(id / 3 AS DECIMAL(38, 18)) AS dec,
  TIMESTAMP '2026-03-29 02:30:00.123456' AS ts,
  TIMESTAMP_NTZ '0001-01-01 00:00:00.000001' AS ntz, X'00ff' AS bin, CAST('NaN' AS DOUBLE) AS nan,
  array(named_struct('d', DATE '9999-12-31', 'm', map('k', CAST(NULL AS STRING)))) AS nested,
  map(named_struct('b', X'00ff', 't', id), 1.5D) AS rates,
  'a"\\n\\\\é' AS txt
  FROM range(4) AS r (id)"""
KINDS = (
    "id BIGINT, dec DECIMAL(38, 18), ts TIMESTAMP, ntz TIMESTAMP_NTZ, bin BINARY, nan DOUBLE,"
    " nested ARRAY<STRUCT<d: DATE, m: MAP<STRING, STRING>>>,"
    " rates MAP<STRUCT<b: BINARY, t: BIGINT>, DOUBLE>, txt STRING"
)


def test_rows_against_an_expectation_keep_each_value(run: Run, spark: "SparkSession", tmp_path: Path) -> None:
    source = "CREATE TABLE src ({}, next AS id + 1{}) USING parquet OPTIONS (path 'all');"
    rule = ", CONSTRAINT even EXPECT (id % 2 = 0) ON VIOLATION QUARANTINE"
    target = "CREATE TABLE dst USING parquet OPTIONS (path 'out');"
    spark.sql(VALUES).write.parquet(str(tmp_path / "all"))
    insert = "INSERT INTO dst SELECT * FROM src;"
    first = run(source.format(KINDS, rule), target, insert)
    assert first[0]["quarantined"] == 2
    run(source.format(KINDS, ""), target, insert, replays=first, key="again")
    run(source.format(KINDS, ""), target.replace("out", "reference"), insert, key="reference")
    assert len(rows(spark, tmp_path / "out")) == 4
    assert repr(rows(spark, tmp_path / "out")) == repr(rows(spark, tmp_path / "reference")), "NaN"


def test_records_of_json_and_of_other_delimiters(run: Run, spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"age": "x", "id": 1}\n{"id": 2, "age": 3}\n{broken\n', "utf-8")
    source = SRC.replace("csv OPTIONS (path 'in.csv')", "json OPTIONS (path 'in.json')")
    first = run(LIMIT, source, OUT, INSERT)
    again = run(LIMIT, source.replace("age INT", "age STRING"), OUT, INSERT, replays=first, key="again")
    assert rows(spark, tmp_path / "out") == [(1, "x"), (2, "3")]
    assert again[0]["quarantined"] == 1
    (tmp_path / "in.csv").write_text('1;"a;b"\n-;"x\n2;5\n', "utf-8")
    options = "OPTIONS (path 'in.csv', delimiter ';', header 'false', null_value '-')"
    source = SRC.replace("OPTIONS (path 'in.csv')", options)
    first = run(LIMIT, source, OUT, INSERT)
    assert first[0]["quarantined"] == 2
    run(LIMIT, source.replace("age INT", "age STRING"), OUT, INSERT, replays=first, key="again")
    assert rows(spark, tmp_path / "out") == [(1, "a;b"), (2, "5"), (None, "x")]


def test_other_statements_are_left_out_and_other_tables_are_read_as_they_are(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    script = """CREATE TABLE names (id INT, name STRING) USING inline
      OPTIONS (rows '[[1, "ann"], [2, "bob"]]');
    CREATE VIEW named AS SELECT id, name FROM src JOIN names USING (id);
    CREATE TABLE a (id INT, name STRING) USING parquet OPTIONS (path 'a', mode 'error');
    CREATE TABLE b USING parquet OPTIONS (path 'b', mode 'error');
    SELECT count(*) FROM src;
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO a SELECT * FROM named;
      INSERT INTO b SELECT id FROM names;
    END;
    ASSERT (SELECT count(*) FROM src) > 2;"""
    first = run(LIMIT, SRC, script)
    assert rows(spark, tmp_path / "a") == [(1, "ann")]
    run(LIMIT, MENDED, script, replays=first, key="again")
    assert rows(spark, tmp_path / "a") == [(1, "ann"), (2, "bob")]
    assert rows(spark, tmp_path / "b") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("inserts", "words"),
    [
        ("INSERT INTO more SELECT count(*) FROM src GROUP BY age;", "it aggregates"),
        (f"{INSERT} INSERT INTO more SELECT id FROM dst;", "it reads table 'dst'"),
        (f"{INSERT} INSERT INTO more SELECT id FROM parquet.`{{folder}}/out`;", "it reads table 'dst'"),
        (f"{MORE} {INSERT} {INSERT}", "it replaces the rows that an INSERT before it adds to table 'dst'"),
        (f"{MORE} {INSERT} INSERT OVERWRITE dst VALUES (1, 'a');", "it replaces the rows"),
        ("INSERT INTO more VALUES (1);", "no INSERT reads table 'src'"),
    ],
)
def test_an_insert_whose_result_would_be_wrong_is_refused_before_any_write(
    run: Run, spark: "SparkSession", tmp_path: Path, inserts: str, words: str
) -> None:
    first = run(LIMIT, SRC, OUT, INSERT)
    before = rows(spark, tmp_path / "out")
    more = "CREATE TABLE more (id INT) USING parquet OPTIONS (path 'more');"
    with pytest.raises(SqlError, match=words):
        run(LIMIT, MENDED, OUT, more, inserts.format(folder=tmp_path), replays=first, key="again")
    assert rows(spark, tmp_path / "out") == before
    assert not (tmp_path / "more").exists()


def test_a_statement_of_an_unknown_kind_is_refused(run: Run, tmp_path: Path) -> None:
    first = run(LIMIT, SRC, OUT, INSERT)
    step = {"kind": "merge", "line": 1, "column": 1}
    with pytest.raises(SqlError, match="a replay of rows cannot run this statement"):
        run(LIMIT, MENDED, OUT, INSERT, replays=first, key="again", more=step)
    assert not (tmp_path / "bad" / "again").exists()


def test_rows_that_are_not_all_there_are_not_replayed(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    first = run(LIMIT, SRC, OUT, INSERT)
    first[0]["quarantined"] = 3
    with pytest.raises(SqlError, match=r"has 2 rows of it, and the job has recorded 3"):
        run(LIMIT, MENDED, OUT, INSERT, replays=first, key="again")
    assert len(rows(spark, tmp_path / "out")) == 3


def test_rows_in_a_table_of_the_script_are_told_from_those_of_other_runs(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    named = "SET job.quarantine = rejects; CREATE TABLE rejects USING parquet OPTIONS (path 'rejects');"
    run(LIMIT, named, SRC, OUT, INSERT, key="other")
    first = run(LIMIT, named, SRC, OUT, INSERT)
    run(LIMIT, named, MENDED, OUT, INSERT, replays=first, key="again")
    assert [row[0] for row in rows(spark, tmp_path / "out")] == [1, 2, 3, None]
    assert spark.read.parquet(str(tmp_path / "rejects")).count() == 5


def test_rows_of_a_stream_are_decoded_again_in_mode_batch(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in.csv").rename(tmp_path / "in" / "a.csv")
    script = "".join((LIMIT, SRC, OUT, INSERT.replace("OVERWRITE", "INTO"))).replace("in.csv", "in")
    script = f"SET job.mode = 'available-now'; {script}"
    first = run(script)
    assert [(each["rows"], each["quarantined"]) for each in first] == [(5, 2), (3, 0)]
    mended = script.replace("age INT", "age STRING")
    again = run(mended, replays=first, first=script, key="again")
    assert [(each["rows"], each["quarantined"]) for each in again] == [(2, 1), (1, 0)]
    assert rows(spark, tmp_path / "out") == [(1, "30"), (2, "x"), (3, "5"), (None, None)]


@pytest.mark.parametrize("folder", ["day=1", "DAY=1"])
def test_records_of_partitioned_files_are_refused(run: Run, tmp_path: Path, folder: str) -> None:
    (tmp_path / "in" / folder).mkdir(parents=True)
    (tmp_path / "in" / folder / "a.csv").write_text("n\n1\nx\n", "utf-8")
    src = "CREATE TABLE src (day INT, n INT) USING csv OPTIONS (path 'in');"
    out = "CREATE TABLE dst USING json OPTIONS (path 'out'); INSERT INTO dst SELECT * FROM src;"
    first = run(LIMIT, src, out)
    with pytest.raises(SqlError, match="the text of 1 records does not have column 'day'"):
        run(LIMIT, src.replace("n INT", "n STRING"), out, replays=first, key="again")
