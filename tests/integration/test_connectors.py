"""A connector of another package: from its entry point to executors that do not have it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compose import build_runners
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.base import SparkTarget
from tests.connector_support import install_example, record_server
from tests.jobs_support import Deployment
from tests.servers.standalone import SMALL_APPLICATION, standalone_cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

RECORDS = [{"n": number, "word": f"w{number}"} for number in range(4)]

COPY = """
CREATE TABLE src (n BIGINT, word STRING) USING records OPTIONS (url '{read}');
CREATE TABLE dst WITH ('connector' = 'records', 'url' = '{written}');
INSERT INTO dst SELECT /*+ REPARTITION(2) */ n * 10 AS n, upper(word) AS word FROM src;
"""

PACKAGES = ("orchestrator", "queues", "spark_runner")


@pytest.fixture(autouse=True)
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    install_example(tmp_path / "site", monkeypatch)


def run(deployment: Deployment, script: str, master: str, *, ui: str = "", **spark: Any) -> Any:
    settings = deployment.settings.model_copy(update={"class_archives": False})
    runners = build_runners(settings, warm=False)
    deployment.worker(runner=runners.for_target(SparkTarget(master, options={"ui": ui})))
    document = {
        "name": "copy",
        "script": script,
        "retry": {"attempts": 1},
        "spark": {"master": master, "conf": {"spark.sql.shuffle.partitions": "2"}, **spark},
    }
    return deployment.wait(deployment.client.submit(build_definition(document, "test")).id, 240)


def written(detail: Any) -> list[tuple[str, int]]:
    assert detail.job.status is Status.SUCCESS, detail.job.error
    return [(table["connector"], table["rows"]) for table in detail.attempts[-1]["tables"]]


@pytest.mark.spark
def test_a_connector_of_a_package_reads_and_writes_on_this_host(deployment: Deployment) -> None:
    with record_server(RECORDS) as source, record_server() as target:
        detail = run(deployment, COPY.format(read=source.url, written=target.url), "local[2]")
    assert written(detail) == [("records", 4)]
    assert sorted(record["word"] for record in target.posted) == ["W0", "W1", "W2", "W3"]


def hidden(folder: Path, *hide: Path) -> Sequence[str]:
    """A command that runs another one in a mount namespace where these folders are empty."""
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    mounts = " && ".join(f"mount --bind {empty} {path}" for path in hide)
    return (str(shutil.which("unshare")), "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh")


def package_folders() -> set[Path]:
    """The folders of our packages: of this checkout, and of the installation if it is another one."""
    find = f"import importlib.util as u; [print(u.find_spec(p).origin) for p in {PACKAGES}]"
    found = set[str]()
    for environment in (os.environ, {**os.environ, "PYTHONPATH": ""}):
        ran = subprocess.run(
            [sys.executable, "-c", find], cwd="/", env=environment, capture_output=True, text=True, check=True
        )
        found |= set(ran.stdout.split())
    return {Path(origin).parent for origin in found}


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.standalone
def test_its_code_reaches_executors_that_share_no_file_system(
    deployment: Deployment, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nodes = tmp_path_factory.mktemp("nodes")
    within = hidden(nodes, tmp_path, *package_folders())
    imported = [*within, sys.executable, "-c", "import spark_runner.connectors.base"]
    missing = subprocess.run(imported, cwd="/", capture_output=True, text=True, check=False)
    assert "No module named 'spark_runner.connectors'" in missing.stderr, "the nodes do not have our code"
    with standalone_cluster(nodes, workers=0) as cluster:
        for _ in range(2):
            cluster.start_worker(cores=1, within=within)
        wait_until(lambda: cluster.alive_workers() == 2, 90, "both nodes serve")
        # Each executor has one core, and the two posts wait for each other: so both executors post.
        with record_server(RECORDS) as source, record_server(together=2) as target:
            detail = run(
                deployment,
                COPY.format(read=source.url, written=target.url),
                cluster.url,
                ui=cluster.ui,
                standalone={"ui": cluster.ui},
                conf={**SMALL_APPLICATION, "spark.cores.max": "2", "spark.executor.cores": "1"},
            )
    assert written(detail) == [("records", 4)]
    assert sorted(record["n"] for record in target.posted) == [0, 10, 20, 30]
