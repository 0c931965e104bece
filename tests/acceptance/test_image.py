"""deploy/Dockerfile, built and run: a real job in the image, as its user."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.servers.image import ROOT, Image

USER = 10001
JOB_TIMEOUT_S = 300

pytestmark = [pytest.mark.timeout(1500), pytest.mark.spark, pytest.mark.xdist_group("image")]


def test_the_image_runs_a_worker_as_a_user_without_rights(image: Image) -> None:
    config = image.config()
    assert config["User"] == f"{USER}:{USER}"
    assert config["Entrypoint"] == ["orchestrator"]
    assert config["Cmd"] == ["worker", "--metrics-address", "9187"]
    assert config["StopSignal"] == "SIGTERM"
    assert "127.0.0.1:9187/livez" in config["Healthcheck"]["Test"][-1]
    assert not [variable for variable in config["Env"] if "PIP" in variable or "PASS" in variable]
    with image.container() as run:
        found = output(
            run, "sh", "-c", "id -u; cat /etc/pip.conf; touch /opt/spark-job-orchestrator/x || echo no"
        )
    assert found.split() == [str(USER), "no"], "it can change the program, or has the builder's settings"


def test_a_job_runs_in_the_image(image: Image, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(ROOT / "examples", work, ignore=shutil.ignore_patterns("output"))
    for path in (work, *work.rglob("*")):
        shutil.chown(path, USER, USER)
    with image.container("--volume", f"{work}:/work") as run:
        assert output(run, "orchestrator", "--version").strip()
        ran = subprocess.run(
            [*run, "orchestrator", "run", "/work/flights.sql"],
            capture_output=True,
            text=True,
            check=False,
            timeout=JOB_TIMEOUT_S,
        )
    assert ran.returncode == 0, ran.stderr
    assert list((work / "output").rglob("part-*"))


def output(run: list[str], *command: str) -> str:
    done = subprocess.run([*run, *command], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout
