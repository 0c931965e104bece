import json
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.errors import SubmissionError
from spark_runner.protocol.process import current_boot_id, current_pid_namespace, processes_of
from spark_runner.runners.base import Runner, RunState, SparkTarget, SubmissionPlace
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.run_directory import remove_run, run_path
from spark_runner.runners.spark_submits import SparkSubmits
from tests.another_user import as_another_user
from tests.runner_support import (
    SLEEPS,
    STAND_IN,
    directory,
    request,
    wait_for,
    wait_until_up,
)


@pytest.fixture
def few_open_files() -> Iterator[None]:
    """The number that systemd grants a service would take longer to use up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_runner_is_what_the_protocol_asks_for(runner: LocalRunner) -> None:
    protocol: Runner = runner
    place = protocol.place()
    assert place == SubmissionPlace(
        "local", socket.gethostname(), current_boot_id(), place.store, pid_namespace=current_pid_namespace()
    )
    assert protocol.reaches(replace(place, boot="an older one"))
    assert not protocol.reaches(replace(place, store="another directory"))
    assert not protocol.reaches(replace(place, host="elsewhere"))
    assert not protocol.reaches(replace(place, backend="yarn"))


@pytest.mark.parametrize("code", [0, 3])
def test_a_driver_runs_and_its_exit_code_and_outcome_are_found(
    runner: LocalRunner, run: str, code: int
) -> None:
    said = (
        "import json, os; open(os.environ['ORCHESTRATOR_RUN_DIR'] + '/outcome.json', 'w').write('{\"n\": 1}')"
    )
    submitted = request(run, f"{said}; raise SystemExit({code})")
    assert runner.submit(submitted).state is RunState.RUNNING
    found = wait_for(runner, run, RunState.EXITED)
    assert (found.run, found.incarnation) == (run, submitted.incarnation)
    assert (found.exit_code, found.outcome, found.detail) == (code, {"n": 1}, "")


def test_an_outcome_cut_short_is_no_outcome(runner: LocalRunner, run: str) -> None:
    runner.submit(request(run, "import os; open('outcome.json', 'w').write('{\"n\":')"))
    assert wait_for(runner, run, RunState.EXITED).outcome is None


@pytest.mark.parametrize("folder", ["scratch", "."])
def test_folders_in_folders_keep_no_run_from_its_end_and_removal(
    runner: LocalRunner, run: str, folder: str
) -> None:
    deep = "import os; os.chdir({!r})\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    submitted = request(run, deep.format(folder))
    runner.submit(submitted)
    assert wait_for(runner, run, RunState.EXITED).exit_code == 0
    path = directory(runner, submitted)
    try:
        runner.kill(run, grace_seconds=0)
        assert not (path / "scratch").exists()
        runner.cleanup(run)
        assert not path.exists()
    finally:  # pytest could not remove them either
        subprocess.run(["/bin/rm", "-rf", str(path)], check=True)


def test_folders_in_folders_take_no_open_files_of_the_worker(
    runner: LocalRunner, run: str, few_open_files: None
) -> None:
    assert few_open_files is None
    submitted = request(run, "import os\nfor _ in range(500): os.mkdir('d'); os.chdir('d')")
    runner.submit(submitted)
    assert wait_for(runner, run, RunState.EXITED).exit_code == 0
    path = directory(runner, submitted)
    try:
        runner.cleanup(run)
        assert not path.exists()
    finally:
        subprocess.run(["/bin/rm", "-rf", str(path)], check=True)


def test_a_folder_from_which_a_program_took_all_rights_is_removed() -> None:
    def is_there() -> bool:
        with tempfile.TemporaryDirectory() as state:
            path = run_path(Path(state), "a-run")
            (path / "1" / "locked" / "inside").mkdir(parents=True)
            (path / "1" / "locked").chmod(0)
            remove_run(Path(state), "a-run", [])
            return path.exists()

    assert as_another_user(is_there) is False, "root needs no right"


def test_logs_are_found_and_streams_kept_apart(runner: LocalRunner, run: str) -> None:
    runner.submit(request(run, "import sys; print('out'); print('err', file=sys.stderr)"))
    wait_for(runner, run, RunState.EXITED)
    assert {log.stream: log.path.read_text("utf-8") for log in runner.logs(run)} == {
        "stdout": "out\n",
        "stderr": "err\n",
    }


def test_names_and_paths_are_in_the_environment_beside_the_users_own_variables(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    given = {"MINE": "ž", "ORCHESTRATOR_RUN": "stolen"}
    submitted = request(run, "import json, os; print(json.dumps([os.getcwd(), dict(os.environ)]))")
    runner.submit(replace(submitted, environment=given))
    wait_for(runner, run, RunState.EXITED)
    path = directory(runner, submitted)
    cwd, environment = json.loads((path / "stdout.log").read_text("utf-8"))
    assert cwd == str(path)
    assert list(Path(environment["SPARK_CONF_DIR"]).iterdir()) == []
    expected = {
        "ORCHESTRATOR_RUN": run,
        "ORCHESTRATOR_INCARNATION": submitted.incarnation,
        "ORCHESTRATOR_RUN_DIR": str(path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "MINE": "ž",
    }
    assert {key: environment[key] for key in expected} == expected


def test_a_remote_master_does_not_receive_a_loopback_address_of_the_driver(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    submitted = replace(
        request(run, "import os; print(os.environ.get('SPARK_LOCAL_IP'))"),
        target=SparkTarget("spark://h:7077"),
    )
    runner.submit(submitted)
    wait_for(runner, run, RunState.EXITED)
    path = directory(runner, submitted)
    assert (path / "stdout.log").read_text("utf-8") == "None\n"
    assert "spark.driver.host" not in (path / "spark.properties").read_text("utf-8")


def test_all_that_may_hold_a_secret_is_private(runner: LocalRunner, run: str) -> None:
    submitted = request(run, SLEEPS, conf={"spark.x.password": "hush"})
    runner.submit(submitted)
    path = wait_until_up(runner, submitted)
    assert [parent.stat().st_mode & 0o777 for parent in (path, *path.parents[:3])] == [0o700] * 4
    assert {
        entry.name for entry in path.iterdir() if entry.is_file() and entry.stat().st_mode & 0o077
    } == set()
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes_of(run)]
    assert len(commands) == 2
    assert not [command for command in commands if b"hush" in command]
    runner.kill(run, grace_seconds=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": "../x"}, "cannot name a directory"),
        ({"incarnation": "a/b"}, "cannot name a directory"),
        ({"conf": {"hive.x": "1"}}, "do not start with `spark.`: remove hive.x"),
        ({"plan": {"x": object()}}, "not JSON serializable"),
        ({"environment": {"A": "\0"}}, "null byte"),
    ],
)
def test_a_failed_start_is_refused_and_leaves_no_submission(
    runner: LocalRunner, run: str, change: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(SubmissionError, match=message):
        runner.submit(replace(request(run), **change))
    assert runner.find(run) == []


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path, driver_main: Path, run: str) -> None:
    (tmp_path / "state").touch()
    runner = LocalRunner(SparkSubmits(tmp_path / "state", spark_submit=STAND_IN), driver_main=driver_main)
    with pytest.raises(SubmissionError, match=str(tmp_path / "state")):
        runner.submit(request(run))


def test_a_missing_spark_is_reported(
    tmp_path: Path, driver_main: Path, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(SubmissionError, match=f"{tmp_path}/bin/spark-submit"):
        LocalRunner(SparkSubmits(tmp_path / "state"), driver_main=driver_main).submit(request(run))


def test_the_same_incarnation_is_not_started_twice(runner: LocalRunner, run: str) -> None:
    submitted = request(run)
    runner.submit(submitted)
    with pytest.raises(SubmissionError, match="File exists"):
        runner.submit(submitted)
    assert wait_for(runner, run, RunState.EXITED).exit_code == 0
