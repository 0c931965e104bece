# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Values in files of text come back as they were written, or do not fit."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.replay_support import rows, run_script
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

Run = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


# Times

MICROS = [-2_998_000_000_123_456, 0, 1, 1_793_000_000_123_456, 253_402_300_800_000_001]
AT_CHANGES = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00.5Z", "1937-07-01T00:00:00Z"]
_ALL = [f"timestamp_micros({each})" for each in MICROS] + [f"TIMESTAMP '{each}'" for each in AT_CHANGES]
TIMES = f"SELECT explode(array({', '.join(_ALL)})) AS t"
LOCAL = "timestampadd(MICROSECOND, unix_micros(t), TIMESTAMP_NTZ '1970-01-01')"


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "Asia/Shanghai"])
@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_times_keep_their_microseconds_in_each_zone(
    run: Run, spark: SparkSession, tmp_path: Path, file_format: str, zone: str
) -> None:
    nested, its = (", array(t) AS a", ", a ARRAY<TIMESTAMP>") if file_format == "json" else ("", "")
    run(
        f"""SET spark.sql.session.timeZone = '{zone}';
        CREATE TABLE f (t TIMESTAMP, n TIMESTAMP_NTZ{its}) USING {file_format} OPTIONS (path 'out');
        CREATE TABLE given USING parquet OPTIONS (path 'given');
        CREATE TABLE found USING parquet OPTIONS (path 'found');
        CREATE TABLE elsewhere USING parquet OPTIONS (path 'elsewhere');
        INSERT INTO given SELECT t, {LOCAL} AS n{nested} FROM ({TIMES});
        INSERT INTO f SELECT * FROM given; INSERT INTO found SELECT * FROM f;
        SET spark.sql.session.timeZone = 'America/New_York';
        INSERT INTO elsewhere SELECT * FROM f;"""
    )
    columns = ["unix_micros(t)", "CAST(n AS STRING)", *(["unix_micros(a[0])"] if nested else [])]
    given, *found = (
        sorted(spark.read.parquet(str(tmp_path / name)).selectExpr(*columns).collect())
        for name in ("given", "found", "elsewhere")
    )
    assert len(given) == len(MICROS) + len(AT_CHANGES)
    assert found == [given, given]


@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_times_that_spark_or_others_have_written_are_read(
    run: Run, spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    frame = spark.sql(
        "SELECT TIMESTAMP '2026-01-02T03:04:05.123Z' AS t, TIMESTAMP_NTZ '2026-01-02 03:04:05' AS n"
    )
    frame.write.format(file_format).option("header", "true").save(str(tmp_path / "in"))
    texts = (
        ("2026-01-02 03:04:05.123456+00:00", "2026-01-02 03:04:05.1234"),
        ("2026-01-02T03:04:05Z", "2026-01-02"),
    )
    for number, (t, n) in enumerate(texts):
        text = f"t,n\n{t},{n}\n" if file_format == "csv" else f'{{"t": "{t}", "n": "{n}"}}\n'
        (tmp_path / "in" / f"{number}.{file_format}").write_text(text)
    (result,) = run(
        f"""CREATE TABLE f (t TIMESTAMP, n TIMESTAMP_NTZ) USING {file_format} OPTIONS (path 'in');
        CREATE TABLE shown USING print;
        INSERT INTO shown SELECT date_format(t, 's.SSSSSS'), n FROM f ORDER BY n, t"""
    )
    assert result["preview"] == [
        ["5.000000", "2026-01-02 00:00:00"],
        ["5.123000", "2026-01-02 03:04:05"],
        ["5.123456", "2026-01-02 03:04:05.1234"],
    ]


# Bytes


def test_bytes_are_refused_by_csv_and_kept_by_json(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    script = "CREATE TABLE f (n INT, b BINARY) USING {} OPTIONS (path 'out'); INSERT INTO f SELECT 1, X'00ff'"
    with pytest.raises(SqlError, match=r"column 'b' is BINARY, which csv files cannot hold; .* base64"):
        run(script.format("csv"))
    assert list(tmp_path.iterdir()) == []
    report = analyse_script(spark, plan_of(script.format("csv"), tmp_path))
    assert str(report["errors"]).count("csv files cannot hold") == 1
    run(f"{script.format('json')}; ASSERT (SELECT b FROM f) = X'00ff'")


# Numbers


TINY = "n INT, a TINYINT, d STRUCT<e: ARRAY<TINYINT>>"
LINES = [
    '{"n": 1, "a": -128, "d": {"e": [127, null]}}',
    '{"n": 2}',
    '{"n": 3, "a": 200}',
    '{"n": 4, "d": {"e": [1, 255]}}',
    '{"n": 5, "a": "x"}',
    '{"n": 6, "a": 300, "more": true}',
]
STREAM = "SET job.mode = 'available-now';"


def with_lines(tmp_path: Path, *lines: str) -> str:
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / f"{len(lines)}.json").write_text("\n".join(lines))
    return f"""CREATE TABLE f ({TINY}, file STRING METADATA FROM 'file_name') USING json OPTIONS (path 'in');
    CREATE TABLE out USING parquet OPTIONS (path 'out');
    INSERT INTO out SELECT n, a, d, file FROM f;"""


@pytest.mark.parametrize("mode", ["", STREAM])
def test_numbers_that_a_tinyint_has_are_read(
    run: Run, spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    run(mode + with_lines(tmp_path, *LINES[:2]))
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.dtypes[:3] == [("n", "int"), ("a", "tinyint"), ("d", "struct<e:array<tinyint>>")]
    assert [tuple(row) for row in found.sort("n").collect()] == [
        (1, -128, ([127, None],), "2.json"),
        (2, None, None, "2.json"),
    ]


@pytest.mark.parametrize("mode", ["", STREAM])
@pytest.mark.parametrize("line", LINES[2:])
def test_a_number_beyond_tinyint_fails_the_job(run: Run, tmp_path: Path, line: str, mode: str) -> None:
    with pytest.raises(SqlError, match=r"does not fit the declared|between -128 and 127"):
        run(mode + with_lines(tmp_path, LINES[0], line))


@pytest.mark.parametrize("mode", ["", STREAM])
def test_records_with_a_number_beyond_tinyint_go_to_the_quarantine(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    script = f"{mode}SET job.error.limit.rows = 10;{with_lines(tmp_path, *LINES)}"
    plan = {**plan_of(script, tmp_path), "quarantine": f"file:{tmp_path}/bad"}
    found = list[dict[str, Any]]()
    execute(spark, plan, lambda _: None, bad_rows=found)
    assert [(each["rows"], each["quarantined"]) for each in found] == [(6, 4)]
    assert spark.read.parquet(str(tmp_path / "out")).select("n").sort("n").collect() == [(1,), (2,)]
    bad = spark.read.parquet(str(found[0]["place"]))
    records = [json.loads(row["record"]) for row in bad.collect()]
    assert {row["n"]: row.get("a") for row in records} == {3: 200, 4: None, 5: "x", 6: 300}
    assert bad.select("form", "rule").distinct().collect() == [("text", "decoding")]


def test_a_replay_judges_numbers_beyond_tinyint_likewise(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"id": 1, "a": 7}\n{"id": 2, "a": 200}\n')
    source = "CREATE TABLE src (id INT, a TINYINT) USING json OPTIONS (path 'in.json');"
    limit, rest = (
        "SET job.error.limit.rows = 9;",
        "CREATE TABLE dst (id INT, a INT) USING parquet OPTIONS (path 'out');",
    )
    run = partial(run_script, spark, tmp_path)
    insert = f"{rest} INSERT INTO dst SELECT * FROM src;"
    first = run(limit, source, insert)
    (again, *_) = run(limit, source, insert, replays=first, key="again")
    assert (again["rows"], again["quarantined"]) == (1, 1)
    left = spark.read.parquet(str(tmp_path / "bad" / "again" / "src"))
    assert [json.loads(row["record"]) for row in left.collect()] == [{"id": 2, "a": 200}]
    with pytest.raises(SqlError, match="between -128 and 127"):
        run(source, insert, replays=first, key="strict")
    run(limit, source.replace("TINYINT", "SMALLINT"), insert, replays=first, key="mended")
    assert rows(spark, tmp_path / "out") == [(1, 7), (2, 200)]
