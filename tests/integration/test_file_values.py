# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Values in files of text come back as they were written, or do not fit."""

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
