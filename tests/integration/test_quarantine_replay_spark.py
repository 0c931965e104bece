"""`job quarantine ID --replay` with a worker and drivers of Spark."""

import json
from pathlib import Path

import pytest

from orchestrator.cli.app import run_app
from orchestrator.compose import DRIVER_MAIN
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import Deployment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SCRIPT = """SET job.error.limit.rows = 9;
CREATE TABLE people (id INT, age INT) USING csv OPTIONS (path 'people.csv');
CREATE TABLE out (id INT, age STRING, CONSTRAINT small EXPECT (id < 50) ON VIOLATION QUARANTINE)
  USING json OPTIONS (path 'out-${ds}');
INSERT OVERWRITE out SELECT * FROM people;
"""


@pytest.fixture
def replay(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    """The command that replays rows of the job `first`, which has set aside three."""
    settings = deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", settings.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", settings.root)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(settings.state_dir))
    (tmp_path / "people.csv").write_text("id,age\n1,30\n2,x\n3,5\nfour,4\n99,9\n", "utf-8")
    mended = tmp_path / "mended.sql"
    mended.write_text(SCRIPT.replace("age INT", "age STRING").replace("id < 50", "id < 100"), "utf-8")
    deployment.worker(runner=LocalRunner(SparkSubmits(settings.state_dir), driver_main=DRIVER_MAIN))
    document = {
        "name": "people",
        "script": SCRIPT,
        "directory": str(tmp_path),
        "retry": {"attempts": 1},
        "spark": {"master": "local[1]", "driver": {"memory": "512m"}},
        "labels": {"fire_time": "2026-02-03T04:05:06Z"},
    }
    deployment.client.submit(build_definition(document, "test"), job_id="first")
    assert deployment.wait("first", timeout=180).job.status is Status.SUCCESS
    assert run_app(["job", "quarantine", "first", "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert sorted(row["record"] for row in shown) == ["2,x", "four,4", '{"id":99,"age":9}']
    return ["job", "quarantine", "first", "--replay", "--script", str(mended), "--table"]


def test_rows_of_a_table_go_again_with_the_corrected_script(
    replay: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app([*replay, "people", "--wait"]) == 0
    assert capsys.readouterr().out == "first.replay-people\n"
    assert rows(tmp_path) == [(1, "30"), (2, "x"), (3, "5")]
    assert run_app(["job", "quarantine", "first.replay-people", "-o", "json"]) == 0
    assert [row["record"] for row in json.loads(capsys.readouterr().out)] == ["four,4"]


def test_rows_of_an_insert_go_again_with_the_corrected_script(
    replay: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app([*replay, "out", "--wait"]) == 0
    assert capsys.readouterr().out == "first.replay.out-line-5\n"
    assert run_app([*replay, "out"]) == 5
    assert "'first.replay.out-line-5' has replayed the rows of the INSERT" in capsys.readouterr().err
    assert rows(tmp_path) == [(1, "30"), (3, "5"), (99, "9")]


def rows(folder: Path) -> list[tuple[int, str]]:
    """The rows of the target."""
    files = (folder / "out-2026-02-03").glob("part-*")
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return sorted((line["id"], line["age"]) for line in lines)
