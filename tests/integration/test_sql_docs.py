"""Every script of sql.md, bad-rows.md and modes.md runs as it is shown."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.built_ins import values_of

pytestmark = pytest.mark.spark

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "".join((DOCS / name).read_text("utf-8") for name in ("sql.md", "bad-rows.md", "modes.md"))
SCRIPTS = re.findall(r"^```sql\n(.*?)^```$", PAGES, re.MULTILINE | re.DOTALL)


def test_the_pages_have_scripts() -> None:
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_a_script_of_the_pages_runs_without_a_warning(
    number: int, spark: SparkSession, tmp_path: Path
) -> None:
    found = check_script(SCRIPTS[number], file="docs.sql", base_dir=str(tmp_path), variables={})
    assert found.errors == found.warnings == ()
    plan = json.loads(json.dumps(found.plan)) | {"built_ins": values_of("docs", 1, datetime.now(UTC))}
    (tmp_path / "orders").mkdir()
    plan["checkpoints"] = f"file:{tmp_path}/checkpoints/docs"
    plan["quarantine"] = f"file:{tmp_path}/quarantine"

    def end() -> None:
        control.stopping.set()  # a stream ends after its first trigger

    control = StreamControl(end)
    execute(spark, plan, lambda _phase: None, control=control)
