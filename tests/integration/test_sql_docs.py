"""Every script of docs/sql.md runs as it is shown."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.built_ins import values_of

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
SCRIPTS = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_page_has_scripts() -> None:
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_a_script_of_the_page_runs_without_a_warning(
    number: int, spark: SparkSession, tmp_path: Path
) -> None:
    found = check_script(SCRIPTS[number], file="docs.sql", base_dir=str(tmp_path), variables={})
    assert found.errors == found.warnings == ()
    plan = json.loads(json.dumps(found.plan)) | {"built_ins": values_of("docs", 1, datetime.now(UTC))}
    execute(spark, plan, lambda _phase: None)
