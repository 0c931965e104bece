"""The catalog of docs/connectors/plug-ins.md, whose jar the definition brings."""

import re
from pathlib import Path

import pytest
import yaml

from orchestrator.compose import build_runners
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.base import SparkTarget
from tests.jobs_support import Deployment
from tests.lake_support import lake_jars

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "plug-ins.md").read_text("utf-8")
(SCRIPT,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(DEFINITION,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_a_jar_of_a_definition_gives_a_script_its_catalog(deployment: Deployment, tmp_path: Path) -> None:
    jars = {jar.name: jar for jar in lake_jars()}
    document = yaml.safe_load(DEFINITION)
    named = [jars[Path(jar).name] for jar in document["spark"]["jars"]]
    document |= {
        "script": SCRIPT.replace("/data", str(tmp_path)),
        "retry": {"attempts": 1},
        "spark": {"master": "local[2]", "jars": [str(jar) for jar in named]},
    }
    runners = build_runners(deployment.settings.model_copy(update={"class_archives": False}), warm=False)
    deployment.worker(runner=runners.for_target(SparkTarget("local[2]")))
    detail = deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)
    assert detail.job.status is Status.SUCCESS, str(detail.job.error)
    assert (tmp_path / "site" / "web" / "visits" / "metadata").is_dir()
