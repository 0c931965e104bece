# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""CSV files have quotes as RFC 4180 and Python's csv module do: doubled, and a backslash is a character."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from tests.replay_support import rows, run_script
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

Run = Callable[[str], list[dict[str, Any]]]

TEXTS = [
    *('Grace "Amazing" Hopper', '"', '""', '"""', '"head', 'tail"', ' "q" ', "'"),
    *("a,b", '"a","b"', 'x,"', '",x', 'Hopper, "G", Grace'),
    *("a\\", "\\", '\\"', '"\\', 'a\\"b', "\\\\", "a\\n", 'c:\\x\\"y"\\'),
    *("  x  ", " ", "#x", "\ttab", "é"),
]
COLUMNS = "n INT, text STRING, last STRING"


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


def _read(run: Run, spark: SparkSession, tmp_path: Path, options: str, mode: str = "batch") -> list[Any]:
    run(
        f"""SET job.mode = '{mode}';
        CREATE TABLE given ({COLUMNS}) USING csv OPTIONS ({options});
        CREATE TABLE found USING parquet OPTIONS (path 'found');
        INSERT INTO found SELECT * FROM given;"""
    )
    return [tuple(row) for row in spark.read.parquet(str(tmp_path / "found")).orderBy("n").collect()]


@pytest.mark.parametrize("mode", ["batch", "available-now"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_what_python_writes_is_read(
    run: Run, spark: SparkSession, tmp_path: Path, mode: str, quoting: Any
) -> None:
    (tmp_path / "in").mkdir()
    with (tmp_path / "in" / "a.csv").open("w", newline="") as file:
        writer = csv.writer(file, quoting=quoting)
        writer.writerow(["n", "text", "last"])
        writer.writerows([n, text, "end"] for n, text in enumerate([*TEXTS, ""]))
    empty = (len(TEXTS), None, "end")  # the empty text is `null_value`
    given = [(n, text, "end") for n, text in enumerate(TEXTS)]
    assert _read(run, spark, tmp_path, "path 'in'", mode) == [*given, empty]


def _write(run: Run, texts: Sequence[str | None], options: str, mode: str = "batch") -> None:
    # The escapes of the literal, and those of JSON in it.
    cells = json.dumps([[n, text, "end"] for n, text in enumerate(texts)])
    literal = cells.replace("\\", "\\\\").replace("'", "\\'")
    run(
        f"""SET job.mode = 'batch';
        CREATE TABLE given ({COLUMNS}) USING inline OPTIONS (rows '{literal}');
        CREATE TABLE staged USING parquet OPTIONS (path 'staged');
        INSERT INTO staged SELECT /*+ COALESCE(1) */ * FROM given;"""
    )
    run(
        f"""SET job.mode = '{mode}';
        CREATE TABLE staged ({COLUMNS}) USING parquet OPTIONS (path 'staged');
        CREATE TABLE written USING csv OPTIONS (path 'out'{options});
        INSERT INTO written SELECT * FROM staged;"""
    )


def _as_python_reads(folder: Path) -> list[list[str]]:
    found = list[list[str]]()
    for path in folder.glob("*.csv"):
        with path.open(newline="") as file:
            found += list(csv.reader(file, strict=True))[1:]
    return sorted(found, key=lambda row: int(row[0]))


@pytest.mark.parametrize("mode", ["batch", "available-now"])
def test_python_reads_what_is_written(run: Run, spark: SparkSession, tmp_path: Path, mode: str) -> None:
    _write(run, [*TEXTS, "", None], "", mode)
    given = [[str(n), text, "end"] for n, text in enumerate([*TEXTS, "", ""])]
    assert _as_python_reads(tmp_path / "out") == given
    back = _read(run, spark, tmp_path, "path 'out'", mode)
    assert back == [(n, text or None, "end") for n, text in enumerate([*TEXTS, "", None])]


def test_null_and_the_empty_text_differ_by_a_null_value(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    _write(run, ["", None, '"-"'], ", null_value '-'")
    assert [row[1] for row in _as_python_reads(tmp_path / "out")] == ["", "-", '"-"']
    back = _read(run, spark, tmp_path, "path 'out', null_value '-'")
    assert [row[1] for row in back] == ["", None, '"-"']


def test_files_of_the_old_form_are_read_with_a_backslash(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    _write(run, TEXTS, ", escape '\\\\'")
    written = "".join(path.read_text() for path in (tmp_path / "out").glob("*.csv"))
    assert '"Grace \\"Amazing\\" Hopper"' in written
    back = _read(run, spark, tmp_path, "path 'out', escape '\\\\'")
    assert back[0] == (0, 'Grace "Amazing" Hopper', "end")
    assert (12, 'Hopper, "G", Grace', "end") in back


def test_bad_records_with_quotes_are_kept_and_replayed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('n,text,last\n1,"a ""b"", c",x\nnone,"d ""e"", f",y\n')
    out = "CREATE TABLE found USING parquet OPTIONS (path 'out'); INSERT INTO found SELECT * FROM given;"
    before, after = (
        f"SET job.error.limit.rows = 5; CREATE TABLE given (n {kind}, text STRING, last STRING)"
        f" USING csv OPTIONS (path 'in.csv'); {out}"
        for kind in ("INT", "STRING")
    )
    first = run_script(spark, tmp_path, before.replace("* FROM", "CAST(n AS STRING) AS n, text, last FROM"))
    assert rows(spark, tmp_path / "out") == [("1", 'a "b", c', "x")]
    kept = spark.read.parquet(str(tmp_path / "bad" / "first" / "given")).first()
    assert kept is not None
    assert kept["record"] == 'none,"d ""e"", f",y'
    run_script(spark, tmp_path, after, replays=first, key="again")
    assert rows(spark, tmp_path / "out") == [("1", 'a "b", c', "x"), ("none", 'd "e", f', "y")]
