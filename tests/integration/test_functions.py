"""Functions of a job's files and of the platform: from a definition to executors that have neither."""

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compose import build_runners
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.base import SparkTarget
from spark_runner.runners.driver_zip import zip_bytes
from tests.integration.test_connectors import hidden, package_folders
from tests.jobs_support import Deployment
from tests.servers.standalone import SMALL_APPLICATION, standalone_cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

SCRIPT = """\
CREATE TEMPORARY FUNCTION slug AS 'job_words.slug';
CREATE TEMPORARY FUNCTION twice AS 'job_numbers.even.twice';
CREATE TABLE src (id BIGINT, name STRING) USING inline OPTIONS (rows '[[1, "Ann B"], [2, null]]');
CREATE VIEW made AS
SELECT /*+ REPARTITION(2) */ slug(name) AS slug, twice(id) AS n, acme_shout(name) AS loud FROM src;
CREATE TABLE shown USING print;
INSERT INTO shown SELECT * FROM made;
ASSERT (SELECT array_sort(collect_list(concat_ws(' ', slug, n, loud))) FROM made)
  = array('4 nobody!', 'ann-b 2 ANN B!'), 'three functions';
"""


@pytest.fixture(autouse=True)
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a function, installed for this process alone; drivers get it from their worker."""
    folder = tmp_path / "site"
    (folder / "acme_words").mkdir(parents=True)
    (folder / "acme_words" / "__init__.py").write_text("MARK = '!'\n", "utf-8")
    (folder / "acme_words" / "text.py").write_text(
        "import acme_words\n\ndef shout(text: str) -> str:\n"
        "    return ('nobody' if text is None else text.upper()) + acme_words.MARK\n",
        "utf-8",
    )
    info = folder / "acme_words-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-words\nVersion: 1.0\n", "utf-8")
    points = "[spark_job_orchestrator.functions]\nacme_shout = acme_words.text:shout\n"
    (info / "entry_points.txt").write_text(points, "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    zip_bytes.cache_clear()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a definition with its Python files."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "job_words.py").write_text(
        "def slug(text: str) -> str:\n"
        "    return None if text is None else text.lower().replace(' ', '-')\n\n"
        "def leak(text: str) -> str:\n    raise KeyError('password=hunter22')\n",
        "utf-8",
    )
    with zipfile.ZipFile(folder / "job_numbers.zip", "w") as archive:
        archive.writestr("job_numbers/__init__.py", "")
        archive.writestr(
            "job_numbers/even.py",
            "import pyarrow as pa\nimport pyarrow.compute as pc\nfrom typing import Annotated\n\n"
            "def twice(n: pa.Array) -> Annotated[pa.Array, 'BIGINT']:\n    return pc.multiply(n, 2)\n",
        )
    return folder


def run(deployment: Deployment, job: Path, script: str, target: SparkTarget, **spark: Any) -> Any:
    settings = deployment.settings.model_copy(update={"class_archives": False})
    deployment.worker(runner=build_runners(settings, warm=False).for_target(target))
    files = {"py_files": ["job_words.py", "job_numbers.zip"]}
    document = {
        "name": "functions",
        "script": script,
        "directory": str(job),
        "retry": {"attempts": 1},
        "spark": {"master": target.master, "deploy_mode": target.deploy_mode, **files, **spark},
    }
    return deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)


@pytest.mark.spark
def test_a_driver_of_this_host_has_them_and_masks_what_they_raise(deployment: Deployment, job: Path) -> None:
    script = (
        f"{SCRIPT}CREATE TEMPORARY FUNCTION leak AS 'job_words.leak';\nINSERT INTO shown SELECT leak('a');\n"
    )
    detail = run(deployment, job, script, SparkTarget("local[2]"))
    assert detail.job.status is Status.ERROR_FAIL
    error = detail.job.error.message
    assert "functions.sql:11:1: writing table 'shown' failed: KeyError" in error, "all before it has passed"
    assert "(job_words.py, line 5, in leak)" in error
    assert "hunter22" not in error
    assert "job_words" not in sys.modules


@pytest.mark.spark
@pytest.mark.standalone
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_they_reach_nodes_that_share_no_code(
    deployment: Deployment, job: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, mode: str
) -> None:
    nodes = tmp_path_factory.mktemp("nodes")
    within = hidden(nodes, tmp_path, *package_folders())
    with standalone_cluster(nodes, workers=0) as cluster:
        cluster.start_worker(cores=2, within=within)
        wait_until(lambda: cluster.alive_workers() == 1, 90, "the node serves")
        options = {"ui": cluster.ui, "rest": cluster.rest, "staging": str(nodes / "staging")}
        target = SparkTarget(cluster.url, mode, options)
        conf = {**SMALL_APPLICATION, "spark.cores.max": "1", "spark.executor.cores": "1"}
        detail = run(deployment, job, SCRIPT, target, standalone=options, conf=conf)
    assert detail.job.status is Status.SUCCESS, detail.job.error
    assert [(table["connector"], table["rows"]) for table in detail.attempts[-1]["tables"]] == [("print", 2)]
