"""The scripts of docs/connectors/lake.md, as they are shown."""

import re
from pathlib import Path

import pytest

from orchestrator.compose import build_runners
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.base import SparkTarget
from spark_runner.sql.compiler.compile import check_script
from tests.jobs_support import Deployment
from tests.lake_support import lake_jars

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "lake.md").read_text("utf-8")
SCRIPTS = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("script", "table"),
    [
        pytest.param(script, table, id=table.partition("/")[0])
        for script, table in zip(
            SCRIPTS, ("iceberg/shop/totals/metadata", "delta/prices/_delta_log"), strict=True
        )
    ],
)
def test_a_submitted_script_gets_what_its_catalog_needs(
    deployment: Deployment, tmp_path: Path, script: str, table: str
) -> None:
    script = script.replace("/data", str(tmp_path))
    found = check_script(script, file="docs.sql", base_dir=str(tmp_path), variables={})
    assert found.errors == found.warnings == ()
    jars = [str(jar) for jar in lake_jars()]
    given = {
        "iceberg": tuple(jar for jar in jars if "iceberg" in jar),
        "delta": tuple(jar for jar in jars if "iceberg" not in jar),
    }
    settings = deployment.settings.model_copy(update={"class_archives": False, "connector_jars": given})
    deployment.settings = settings
    deployment.worker(runner=build_runners(settings, warm=False).for_target(SparkTarget("local[2]")))
    document = {
        "name": "lakes",
        "script": script,
        "retry": {"attempts": 1},
        "spark": {
            "master": "local[2]",
            "conf": {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "1"},
        },
    }
    detail = deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)
    assert detail.job.status is Status.SUCCESS, str(detail.job.error)
    assert (tmp_path / table).is_dir()
