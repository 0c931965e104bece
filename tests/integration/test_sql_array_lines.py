"""Lines of JSON with arrays: each element is a row, and a line with one that does not fit goes as a whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.model.row_replay import chosen, replay_plan
from orchestrator.model.set_aside import set_aside_in
from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

DAMAGED = ' [{"id":2},{"id":"x"},{"id":3}]'
RAW = f'{{"id":1}}\n{DAMAGED}\n[{{"id":4}},{{"id":5}}]\n[]\n[6,{{"id":7}}]\n'
SCRIPT = """SET job.error.limit.rows = 9;
CREATE TABLE src (id INT) USING json OPTIONS (path 'in');
CREATE TABLE dst (id INT) USING parquet OPTIONS (path 'out');
INSERT INTO dst SELECT id FROM src;
"""


@pytest.mark.parametrize("mode", ["batch", "available-now"])
def test_all_rows_of_such_a_line_are_set_aside_with_the_line(
    spark: "SparkSession", tmp_path: Path, mode: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(RAW)
    found = list[dict[str, Any]]()
    plan = {**plan_of(f"SET job.mode = '{mode}';\n{SCRIPT}", tmp_path), "quarantine": f"file:{tmp_path}/bad"}
    execute(spark, plan, lambda _: None, Writer("run"), bad_rows=found)
    assert sorted(row["id"] for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [1, 4, 5]
    src = found[0]
    assert (src["table"], src["rows"], src["quarantined"]) == ("src", 7, 4)
    rows = spark.read.parquet(src["place"]).collect()
    assert sorted(row["record"] for row in rows) == [DAMAGED] * 3 + ['[6,{"id":7}]']
    assert {(row["form"], row["rule"], Path(row["file"]).name) for row in rows} == {
        ("text", "decoding", "a.json")
    }
    assert {row["reason"] for row in rows} == {"the record does not fit the declared columns"}
    if mode == "batch":
        chosen_rows = chosen(set_aside_in({"bad_rows": found}), None, "job")
        again = dict(
            replay_plan(plan, chosen_rows, text=SCRIPT, run_key="run", attempt=1, before=lambda: plan)
        )
        with pytest.raises(SqlError, match="4 rows come from lines that are arrays of JSON"):
            execute(spark, again, lambda _: None, Writer("again"))
