"""The script of docs/connectors/hive.md, on a metastore in a folder."""

import re
from pathlib import Path

import pytest
import yaml

from orchestrator.compose import build_runners
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.base import SparkTarget
from spark_runner.sql.compiler.compile import check_script
from tests.jobs_support import Deployment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "hive.md").read_text("utf-8")
(SCRIPT,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
_, FOLDER = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LATER = """INSERT INTO spark_catalog.shop.totals VALUES (1L, 'bob');
ASSERT (SELECT array_sort(array_agg(total)) FROM spark_catalog.shop.totals) = array(1L, 3L, 18L);"""


@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param([SCRIPT + LATER], id="one job"),
        pytest.param([SCRIPT, LATER], id="two jobs", marks=pytest.mark.campaign),
    ],
)
def test_jobs_fill_a_table_of_hive_and_read_it(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: list[str]
) -> None:
    found = check_script(SCRIPT, file="docs.sql", base_dir=str(tmp_path), variables={})
    assert found.errors == found.warnings == ()
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    conf = yaml.safe_load(FOLDER.replace("/data", str(tmp_path))) | {"spark.sql.shuffle.partitions": "2"}
    settings = deployment.settings.model_copy(update={"class_archives": False})
    runners = build_runners(settings, warm=False)
    deployment.worker(runner=runners.for_target(SparkTarget("local[2]")))
    for script in scripts:
        document = {
            "name": "totals",
            "script": script,
            "retry": {"attempts": 1},
            "spark": {"master": "local[2]", "conf": conf},
        }
        detail = deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)
        assert detail.job.status is Status.SUCCESS, str(detail.job.error)
    assert (tmp_path / "hive" / "warehouse" / "shop.db" / "totals" / "customer=ann").is_dir()
    assert not list(here.iterdir()), "Hive and Derby leave nothing in the working directory of the worker"
