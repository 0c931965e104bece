"""The scripts of docs/connectors/files.md."""

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.execution import execute

pytestmark = pytest.mark.spark

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "files.md").read_text("utf-8")
WORKED, S3 = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_worked_script_runs_without_a_warning(spark: SparkSession, tmp_path: Path) -> None:
    found = check_script(WORKED, file="docs.sql", base_dir=str(tmp_path), variables={})
    assert found.errors == found.warnings == ()
    for _ in range(2):
        results = execute(spark, json.loads(json.dumps(found.plan)), lambda _phase: None)
        assert [each["rows"] for each in results] == [3, 2]
    assert len(list((tmp_path / "daily").glob("day=*/part-*.orc"))) == 2
    assert len(list((tmp_path / "pages").glob("part-*.txt.gz"))) >= 2


def test_the_table_in_s3_is_right() -> None:
    found = check_script(
        f"{S3} INSERT INTO daily SELECT 'home', 1L", file="docs.sql", base_dir="/", variables={}
    )
    assert found.errors == ()
