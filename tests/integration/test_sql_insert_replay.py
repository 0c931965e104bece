# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Rows that an INSERT has set aside, or that its target has rejected, go again as its query gave them."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_runner.sql.text.errors import SqlError
from tests.bad_rows_driver import AFTER, WITHIN
from tests.replay_support import Bad, replayed_plan, rows, run_script
from tests.sampling import sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

LIMIT = "SET job.error.limit.rows = 9; "
SRC = "CREATE TABLE src (n STRING) USING csv OPTIONS (path 'in'); "
OUT = (
    "CREATE TABLE dst (n INT, CONSTRAINT small EXPECT (n < 10) ON VIOLATION QUARANTINE)"
    " USING parquet OPTIONS (path 'out'); "
)
INSERT = "INSERT OVERWRITE dst SELECT n FROM src; "
RELAXED, TEXT = (
    OUT.replace("n < 10", "n < 100"),
    OUT.replace("n INT", "n STRING").replace("n < 10", "n < 100"),
)
NAMED = "SET job.quarantine = rejects; CREATE TABLE rejects USING parquet OPTIONS (path 'rejects'); "

Run = Callable[..., Bad]


@pytest.fixture
def run(spark: "SparkSession", tmp_path: Path) -> Run:
    """Run a script; returns what it says of bad rows."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("n\n1\n007\n012\n130\ntwo\n", "utf-8")
    return partial(run_script, spark, tmp_path)


def counts(bad: Bad) -> list[tuple[str, int, int]]:
    return [(each["table"], each["rows"], each["quarantined"]) for each in bad]


def test_rows_go_into_the_target_as_it_is_declared_now_and_the_query_does_not_run_again(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    first = run(LIMIT, SRC, OUT, INSERT)
    assert counts(first) == [("src", 5, 0), ("dst (line 1)", 5, 3)]
    aside = spark.read.parquet(str(tmp_path / "bad" / "first" / "dst%20%28line%201%29"))
    kept = sorted((row["record"], row["types"], row["rule"]) for row in aside.collect())
    assert kept == [
        ('{"n":"012"}', "n STRING", "small"),
        ('{"n":"130"}', "n STRING", "small"),
        ('{"n":"two"}', "n STRING", "cast"),
    ]
    (tmp_path / "in" / "a.csv").unlink()
    for attempt in (1, 2):
        again = run(LIMIT, SRC, "\n", RELAXED, INSERT, replays=first, key="again", attempt=attempt)
        assert counts(again) == [("dst (line 2)", 3, 2)]
        assert rows(spark, tmp_path / "out") == [(1,), (12,), (7,)]
    # What still does not fit goes again from the quarantine of the replay.
    texts = TEXT.replace("(path 'out')", "(path 'texts')").replace("n < 100", "n <> '130'")
    last = run_script(
        *(spark, tmp_path, LIMIT, SRC, texts, INSERT), replays=again, of="again", of_attempt=2, key="last"
    )
    assert counts(last) == [("dst (line 1)", 2, 1)]
    assert rows(spark, tmp_path / "texts") == [("two",)]
    left = spark.read.parquet(str(tmp_path / "bad" / "last" / "dst%20%28line%201%29")).first()
    assert left is not None
    assert left["record"] == '{"n":"130"}', "as the query of the first run gave it"


VALUES = """SELECT id, CAST(id / 3 AS DECIMAL(38, 18)) AS dec,
  TIMESTAMP '2026-10-25 02:30:00.123456' AS ts, TIMESTAMP_NTZ '0001-01-01 00:00:00.000001' AS ntz,
  X'00ff' AS bin, CAST('NaN' AS DOUBLE) AS nan, CAST(1.1 AS FLOAT) AS flt,
  array(named_struct('d', DATE '9999-12-31', 'm', map('k', CAST(NULL AS STRING)))) AS nested,
  INTERVAL '1 02:03:04.5' DAY TO SECOND AS span, NULL AS nothing,
  map(DATE '0001-02-03', map(id, 'v')) AS days,
  'a"\\\\n\\\\\\\\é' AS `t.x``t` FROM range(4)"""
KINDS = (
    "id BIGINT, dec DECIMAL(38, 18), ts TIMESTAMP, ntz TIMESTAMP_NTZ, bin BINARY, nan DOUBLE, flt FLOAT,"
    " nested ARRAY<STRUCT<d: DATE, m: MAP<STRING, STRING>>>, span INTERVAL DAY TO SECOND, nothing INT,"
    " days MAP<DATE, MAP<BIGINT, STRING>>,"
    " `t.x``t` STRING"
)


def test_values_of_each_type_stay_what_they_are(run: Run, spark: "SparkSession", tmp_path: Path) -> None:
    rule = ", CONSTRAINT even EXPECT (id % 2 = 0) ON VIOLATION QUARANTINE"
    table = f"CREATE TABLE dst ({KINDS}{{}}) USING parquet OPTIONS (path '{{}}');"
    insert = f"INSERT INTO dst {VALUES};"
    first = run(table.format(rule, "out"), insert)
    assert counts(first) == [("dst (line 1)", 4, 2)]
    run(table.format("", "out"), insert, replays=first, key="again")
    run(table.format("", "reference"), insert, key="reference")
    assert len(rows(spark, tmp_path / "out")) == 4
    assert repr(rows(spark, tmp_path / "out")) == repr(rows(spark, tmp_path / "reference")), "NaN"


def test_times_before_the_standard_time_of_a_zone_keep_their_seconds(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    zone = "SET spark.sql.session.timeZone = 'Africa/Monrovia';"  # 44 minutes and 30 seconds, until 1972
    table = "CREATE TABLE dst (at TIMESTAMP{}) USING parquet OPTIONS (path 'out');"
    rule = ", CONSTRAINT late EXPECT (at > '2000-01-01') ON VIOLATION QUARANTINE"
    insert = (
        "INSERT INTO dst VALUES (TIMESTAMP '1582-10-10 01:02:03.456789'), (TIMESTAMP '1930-06-01 12:00:00');"
    )
    first = run(zone, table.format(rule), insert)
    run(zone, table.format(""), insert, replays=first, key="again")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Africa/Monrovia")
    found = session.read.parquet(str(tmp_path / "out")).selectExpr("CAST(at AS STRING) AS at").collect()
    assert sorted(row["at"] for row in found) == ["1582-10-10 01:02:03.456789", "1930-06-01 12:00:00"]


def test_rows_that_a_target_rejects_go_again_if_its_connector_gives_their_columns(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    script = "CREATE TABLE dst (n SMALLINT) USING print; INSERT INTO dst SELECT * FROM range(4) AS r (n);"
    mended = script.replace("USING print", "USING parquet OPTIONS (path 'out')")
    texts = run(LIMIT, script, sink="tests.rejecting_sink:RejectingSink", key="first")
    with pytest.raises(SqlError, match="kept 2 rejected rows without their columns"):
        run(LIMIT, mended, replays=texts, key="again")
    first = run(LIMIT, script, sink="tests.rejecting_sink:RowRejectingSink", attempt=2)
    assert counts(first) == [("dst (line 1)", 4, 2)]
    run(LIMIT, mended, replays=first, key="again", of_attempt=2)
    assert rows(spark, tmp_path / "out") == [(0,), (2,)]


def test_rows_of_a_set_that_are_in_a_table_of_the_script_go_again(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    more = "CREATE TABLE more (n INT) USING parquet OPTIONS (path 'more');"
    inserts = f"EXECUTE STATEMENT SET BEGIN\n INSERT INTO more SELECT n FROM src;\n {INSERT}\nEND;"
    run(LIMIT, NAMED, SRC, OUT, more, inserts, key="other")
    first = run(LIMIT, NAMED, SRC, OUT, more, inserts)
    assert counts(first)[1:] == [("more (line 2)", 5, 1), ("dst (line 3)", 5, 3)]
    again = run(LIMIT, NAMED, SRC, RELAXED, more, inserts, replays=first, table="dst", key="again")
    assert counts(again) == [("dst (line 3)", 3, 2)]
    assert rows(spark, tmp_path / "out") == [(1,), (12,), (7,)]
    assert len(rows(spark, tmp_path / "more")) == 8
    assert len(rows(spark, tmp_path / "rejects")) == 10


def test_rows_of_a_stream_go_again_in_mode_batch(run: Run, spark: "SparkSession", tmp_path: Path) -> None:
    script = "SET job.mode = 'available-now'; " + LIMIT + SRC + OUT + INSERT.replace("OVERWRITE", "INTO")
    # A further attempt adds nothing: the first one has written the only batch.
    counted = [counts(first := run(script, attempt=attempt)) for attempt in (1, 2)]
    assert counted[0] == counted[1]
    assert counted[0][1] == ("dst (line 1)", 5, 3)
    again = run(script.replace("n < 10", "n < 100"), replays=first, first=script, key="again")
    assert counts(again) == [("dst (line 1)", 3, 2)]
    assert rows(spark, tmp_path / "out") == [(1,), (12,), (7,)]


@pytest.mark.parametrize("changed", [OUT.replace("n INT", "m INT").replace("n <", "m <"), TEXT])
def test_other_names_are_refused_and_other_types_are_not(run: Run, tmp_path: Path, changed: str) -> None:
    first = run(LIMIT, SRC, OUT.replace("(path 'out')", "(path 'first')"), INSERT)
    if "m INT" in changed:
        with pytest.raises(SqlError, match="have the columns n, and the table declares m; a replay needs"):
            run(LIMIT, SRC, changed, INSERT, replays=first, key="again")
    else:
        # The expectation compares numbers: the text that is none fails the job, and nothing is written.
        with pytest.raises(SqlError, match="CAST_INVALID_INPUT"):
            run(LIMIT, SRC, changed, INSERT, replays=first, key="again")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("point", sample([WITHIN, AFTER], 1, "kills of replays"))
def test_a_replay_that_is_killed_and_tried_again_adds_each_row_once(
    run: Run, spark: "SparkSession", tmp_path: Path, point: str
) -> None:
    first = run(LIMIT, NAMED, SRC, OUT, INSERT)
    plan = replayed_plan(tmp_path, LIMIT + NAMED + SRC + RELAXED + INSERT, first)
    command = [sys.executable, "-m", "tests.bad_rows_driver", str(tmp_path), "out", point, "1"]
    killed = subprocess.run(command, input=json.dumps(plan), text=True, timeout=240, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(rows(spark, tmp_path / "rejects")) == 5, "it died behind the quarantine"
    again = run(LIMIT, NAMED, SRC, RELAXED, INSERT, replays=first, key="run", attempt=2)
    assert counts(again) == [("dst (line 1)", 3, 2)]
    assert rows(spark, tmp_path / "out") == [(1,), (12,), (7,)]
    assert len(rows(spark, tmp_path / "rejects")) == 5
