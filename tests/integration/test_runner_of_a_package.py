"""A runner that another package brings, found by its entry point."""

import sys
from pathlib import Path

import pytest

from orchestrator.compose import build_runners
from orchestrator.config.settings import Settings
from orchestrator.model.definition import build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.states import Status
from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import SparkTarget
from tests.jobs_support import Deployment, python_job

PACKAGE = """
import os
from pathlib import Path
from orchestrator.compose import DRIVER_MAIN
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.registry import OneRunner
from tests.jobs_support import stand_ins

class Runner(LocalRunner):
    backend = "shed"

def backend():
    return OneRunner(Runner(stand_ins(Path(os.environ["SHED_DIR"])), driver_main=DRIVER_MAIN))
"""
METADATA = "Metadata-Version: 2.1\nName: shed\nVersion: 1.0\n"
ENTRY_POINTS = "[spark_job_orchestrator.runners]\nshed = shed_runner:backend\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    (folder / "shed-1.0.dist-info").mkdir(parents=True)
    (folder / "shed_runner.py").write_text(PACKAGE, "utf-8")
    (folder / "shed-1.0.dist-info" / "METADATA").write_text(METADATA, "utf-8")
    (folder / "shed-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS, "utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("SHED_DIR", str(tmp_path / "shed"))
    monkeypatch.delitem(sys.modules, "shed_runner", raising=False)


@pytest.mark.usefixtures("package")
def test_a_job_whose_master_a_package_serves_runs_there(deployment: Deployment, tmp_path: Path) -> None:
    runners = build_runners(deployment.settings)
    runner = runners.for_target(SparkTarget("shed://corner"))
    assert (runner.backend, runner.place().backend) == ("shed", "shed")
    deployment.worker(runner=runner)
    definition = python_job("print('here')", spark={"master": "shed://corner", "options": {"key": 1}})
    detail = deployment.wait(deployment.client.submit(definition).id)
    assert detail.job.status is Status.SUCCESS
    assert detail.attempts[0]["place"]["backend"] == "shed"
    assert runners.at(runner.place()) is runner
    assert len(list((tmp_path / "shed" / "runs").iterdir())) == 1


def test_without_it_the_master_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="unknown master 'shed://corner': expected local"):
        build_definition({"name": "x", "python": "pass", "spark": {"master": "shed://corner"}}, "test")
    runners = build_runners(Settings(state_dir=tmp_path))
    with pytest.raises(RefusedSubmission, match="no runner serves the master 'shed://corner'"):
        runners.for_target(SparkTarget("shed://corner"))
