"""`requirements` of jobs: driver and executors import them, on this host and on clusters."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from orchestrator.admin.views import JobDetail
from orchestrator.compose import build_runners
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from orchestrator.model.waiting import Reason
from spark_runner.runners.base import SparkTarget
from tests.integration.test_connectors import hidden, package_folders
from tests.jobs_support import Deployment
from tests.servers.standalone import SMALL_APPLICATION, standalone_cluster
from tests.servers.yarn import Yarn
from tests.waiting import wait_until
from tests.wheels import make_wheel
from tests.yarn_support import found_by_hadoop, spark_settings

pytestmark = pytest.mark.timeout(600)

PROGRAM = """
import os, subprocess, sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
import greeting

spark = SparkSession.builder.getOrCreate()
rows = spark.range(4, numPartitions=2).select(udf(greeting.hello, "string")("id").alias("words")).collect()
assert sorted(row.words for row in rows) == ["hi 0", "hi 1", "hi 2", "hi 3"], rows
program = "import words; print(words.version)"
below = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
assert below.stdout == "2.1\\n", below
"""


@pytest.fixture(autouse=True)
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "words", "1.0")
    make_wheel(folder, "words", "2.1", text="say = 'hi '\n")
    text = "import words\n\ndef hello(n):\n    return words.say + str(n)\n"
    make_wheel(folder, "greeting", needs=["words>=2", "pyspark"], text=text)
    for name in [each for each in os.environ if each.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def job(*requirements: str, program: str = PROGRAM, **spark: Any) -> dict[str, Any]:
    return {
        "name": "packages",
        "python": program,
        "requirements": requirements,
        "retry": {"attempts": 1, "submissions": 1},
        "spark": spark,
    }


def with_worker(deployment: Deployment, target: SparkTarget) -> Deployment:
    cache = deployment.settings.state_dir.with_name("cache")
    deployment.settings = deployment.settings.model_copy(update={"class_archives": False, "cache_dir": cache})
    deployment.worker(runner=build_runners(deployment.settings, warm=False).for_target(target))
    return deployment


def ended(deployment: Deployment, document: dict[str, Any]) -> JobDetail:
    return deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)


@pytest.mark.spark
def test_jobs_of_a_host_share_one_installation(deployment: Deployment) -> None:
    target = SparkTarget("local[2]")
    with_worker(deployment, target)
    document = build_definition(job("greeting==1.0", master=target.master), "test")
    ids = [deployment.client.submit(document).id for _ in range(2)]
    for each in ids:
        detail = deployment.wait(each, 240)
        assert detail.job.status is Status.SUCCESS, detail.job.error
    packages = deployment.settings.cache_dir / "packages"
    assert len([path for path in packages.iterdir() if path.is_dir()]) == 1


def test_a_package_that_does_not_exist_fails_the_job_before_any_attempt(deployment: Deployment) -> None:
    with_worker(deployment, SparkTarget("local[1]"))
    detail = ended(deployment, job("greeting==9.9", master="local[1]"))
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.attempt == 0
    error = detail.job.error
    assert error is not None
    assert error.error_class == "definition"
    assert error.message == (
        "`requirements`: there is no greeting==9.9; the nearest is 1.0; the latest are 1.0"
    )


def test_a_job_shows_that_it_waits_for_its_packages_and_can_be_stopped(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an index that never answers
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        with_worker(deployment, SparkTarget("local[1]"))
        document = build_definition(job("greeting", "words", master="local[1]"), "test")
        job_id = deployment.client.submit(document).id

        def message() -> str:
            waiting = deployment.client.detail(job_id).waiting
            return waiting.message if waiting is not None and waiting.reason == Reason.PACKAGES else ""

        assert wait_until(message, 60, "the job waits for its packages").endswith(
            " installs 2 packages: greeting, words"
        )
        assert deployment.client.get(job_id).attempt == 0, "no slot and no attempt is used meanwhile"
        deployment.client.kill(job_id)
        assert deployment.wait(job_id, 60).job.status is Status.CANCEL


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.standalone
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_executors_of_a_standalone_cluster_get_them(
    mode: str, deployment: Deployment, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nodes = tmp_path_factory.mktemp("nodes")
    within = hidden(nodes, tmp_path, *package_folders())  # the node sees nothing of the worker
    with standalone_cluster(nodes, workers=0) as cluster:
        cluster.start_worker(cores=2, within=within)
        wait_until(lambda: cluster.alive_workers() == 1, 90, "the node serves")
        options = {"ui": cluster.ui, "rest": cluster.rest, "staging": str(nodes / "staging")}
        target = SparkTarget(cluster.url, mode, options)
        with_worker(deployment, target)
        spark: dict[str, Any] = {
            "standalone": options,
            "conf": SMALL_APPLICATION,
            "deploy_mode": mode,
            "master": target.master,
        }
        detail = ended(deployment, job("greeting", **spark))
    assert detail.job.status is Status.SUCCESS, detail.job.error


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.yarn
def test_containers_of_yarn_get_them(deployment: Deployment, yarn: Yarn) -> None:
    target = SparkTarget("yarn", "cluster")
    with found_by_hadoop(yarn):
        with_worker(deployment, target)
        spark: dict[str, Any] = {
            "conf": spark_settings(yarn.staging),
            "deploy_mode": "cluster",
            "master": "yarn",
        }
        detail = ended(deployment, job("greeting", **spark))
    assert detail.job.status is Status.SUCCESS, detail.job.error
