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
from spark_runner.runners.driver_zip import package_zip_bytes, zip_bytes
from tests.integration.test_connectors import hidden, package_folders
from tests.jobs_support import Deployment
from tests.kubernetes_support import KubernetesSite
from tests.servers.standalone import SMALL_APPLICATION, standalone_cluster
from tests.servers.yarn import Yarn
from tests.waiting import wait_until
from tests.yarn_support import found_by_hadoop, spark_settings

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

SENT = """
CREATE TEMPORARY FUNCTION origin AS 'job_words.origin';
ASSERT (SELECT count(*) FROM src WHERE origin(name) NOT LIKE '{job}/%') = 2, 'a file that was sent';
"""

MEETING = """
CREATE TEMPORARY FUNCTION meet AS 'job_words.meet';
ASSERT (SELECT min(meet('{folder}')) FROM (SELECT /*+ REPARTITION(2) */ id FROM range(64))) = 2, 'two';
"""
"""Each executor has one core, and the calls of two tasks wait for each other."""


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
    for cached in (zip_bytes, package_zip_bytes):
        cached.cache_clear()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a definition with its Python files."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "job_words.py").write_text(
        "def slug(text: str) -> str:\n"
        "    return None if text is None else text.lower().replace(' ', '-')\n\n"
        "def leak(text: str) -> str:\n    raise KeyError('password=hunter22')\n\n"
        "def origin(text: str) -> str:\n    return __file__\n\n"
        "def meet(folder: str) -> int:\n"
        "    import os, pathlib, time\n"
        "    there, until = pathlib.Path(folder), time.monotonic() + 60\n"
        "    (there / str(os.getppid())).touch()  # the daemon of the Python workers of one executor\n"
        "    while len(found := list(there.iterdir())) < 2 and time.monotonic() < until:\n"
        "        time.sleep(0.05)\n"
        "    return len(found)\n",
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
    return ended(deployment, job, script, target, **spark)


def ended(deployment: Deployment, job: Path, script: str, target: SparkTarget, **spark: Any) -> Any:
    """A job that a worker has run."""
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


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.standalone
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_they_reach_nodes_that_share_no_code(
    deployment: Deployment, job: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, mode: str
) -> None:
    nodes = tmp_path_factory.mktemp("nodes")
    within = hidden(nodes, tmp_path, *package_folders())
    meeting = nodes / "meeting"
    meeting.mkdir()
    with standalone_cluster(nodes, workers=0) as cluster:
        for _ in range(2):
            cluster.start_worker(cores=1 if mode == "client" else 2, within=within)
        wait_until(lambda: cluster.alive_workers() == 2, 90, "both nodes serve")
        options = {"ui": cluster.ui, "rest": cluster.rest, "staging": str(nodes / "staging")}
        target = SparkTarget(cluster.url, mode, options)
        conf = {**SMALL_APPLICATION, "spark.cores.max": "2", "spark.executor.cores": "1"}
        script = SCRIPT + MEETING.format(folder=meeting)
        detail = run(deployment, job, script, target, standalone=options, conf=conf)
    check_written(detail)


def check_written(detail: Any) -> None:
    assert detail.job.status is Status.SUCCESS, detail.job.error
    assert [(table["connector"], table["rows"]) for table in detail.attempts[-1]["tables"]] == [("print", 2)]


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.yarn
def test_they_reach_the_containers_of_yarn(deployment: Deployment, job: Path, yarn: Yarn) -> None:
    script = SCRIPT + SENT.format(job=job)
    with found_by_hadoop(yarn):
        conf = spark_settings(yarn.staging)
        check_written(run(deployment, job, script, SparkTarget("yarn", "cluster"), conf=conf))


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.kubernetes
@pytest.mark.timeout(1800)  # the API server is built where it is not in the cache yet
def test_they_reach_the_pods_of_kubernetes(
    deployment: Deployment, job: Path, kubernetes_site: KubernetesSite
) -> None:
    target = kubernetes_site.target()
    deployment.worker(runner=kubernetes_site.runner(spark_submit=None))
    in_image = [f"local://{job / name}" for name in ("job_words.py", "job_numbers.zip")]
    conf = {"spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.executor.instances": "1"}
    own = {"py_files": in_image, "kubernetes": dict(target.options), "conf": conf}
    check_written(ended(deployment, job, SCRIPT, target, **own))
