"""Above a limit, and without a place for its rejected rows, a write changes nothing."""

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import DatabaseServer

CHECKED = "CREATE TABLE t (id int CHECK (id >= 0)); INSERT INTO t VALUES (7)"
QUARANTINE = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad'); SET job.quarantine = bad;"
KEPT = "SELECT count(*), sum(id) FROM t"


def script(database: DatabaseServer, percent: float, values: str) -> str:
    return f"""SET job.error.limit.percent = {percent}; {QUARANTINE}
    CREATE TABLE t (id INT) {database.options("t")}; INSERT OVERWRITE t VALUES {values};"""


@pytest.mark.parametrize(
    ("percent", "values"),
    [(49, "(1), (-2), (3), (-4)"), (25, "('1'), ('-2'), ('3'), ('word')")],
    ids=["rejected", "rejected and judged before"],
)
def test_more_rows_than_the_percentage_fail_the_write_as_a_whole(
    postgres: DatabaseServer, run_script: Run, percent: int, values: str
) -> None:
    postgres.run(CHECKED)
    with pytest.raises(SqlError, match=r"refused more than [01] rows of this write"):
        run_script(script(postgres, percent, values))
    assert postgres.run(KEPT) == [["1", "7"]]
    assert [each["rows"] for each in run_script(script(postgres, 50, values))] == [2]
    assert postgres.run(KEPT) == [["2", "4"]]


def test_a_percentage_holds_for_the_micro_batches_so_far(
    postgres: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: object
) -> None:
    postgres.run(CHECKED)
    text = f"""SET job.mode = 'available-now'; SET job.error.limit.percent = %s; {QUARANTINE}
    CREATE TABLE src (id INT) USING parquet OPTIONS (path '{tmp_path}/src');
    CREATE TABLE t (id INT) {postgres.options("t")}; INSERT INTO t SELECT * FROM src;"""
    jdbc_spark.sql("SELECT CAST(id AS INT) FROM range(-1, 3)").write.parquet(f"{tmp_path}/src")
    with pytest.raises(SqlError, match="refused more than 0 rows of this write"):
        run_script(text % 24)
    assert postgres.run(KEPT) == [["1", "7"]]
    assert [each["rows"] for each in run_script(text % 25)] == [3]
    assert postgres.run(KEPT) == [["4", "10"]]


def test_a_refused_row_for_which_there_is_no_place_fails_the_write_as_a_whole(
    database: DatabaseServer, run_script: Run
) -> None:
    database.run(CHECKED)
    text = f"""SET job.error.limit.rows = 1; CREATE TABLE t (id INT) {database.options("t")};
    INSERT INTO t VALUES (1), (-2);"""
    for _ in range(2):
        with pytest.raises(SqlError, match=r"refused: .*no place for such rows.*SET job\.quarantine"):
            run_script(text)
    assert database.run(KEPT) == [["1", "7"]]
