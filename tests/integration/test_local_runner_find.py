import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.process import RunProcess, processes_of, run_processes
from spark_runner.runners.base import RunState
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.pid_namespaces import IN_ANOTHER_PID_NAMESPACE
from tests.runner_support import (
    SLEEPS,
    SURVIVES_SHIM,
    directory,
    lose_shim,
    record,
    request,
    wait_for,
    wait_until_up,
)
from tests.waiting import wait_until


def test_submissions_are_found_oldest_first_by_any_runner_of_the_directory(
    runner: LocalRunner, run: str, tmp_path: Path, driver_main: Path
) -> None:
    first, second = request(run, "raise SystemExit(7)"), request(run, SLEEPS)
    runner.submit(first)
    wait_for(runner, run, RunState.EXITED)
    runner.submit(second)
    wait_until_up(runner, second)
    other = LocalRunner(SparkSubmits(tmp_path / "state"), driver_main=driver_main)
    assert [(found.incarnation, found.state, found.exit_code) for found in other.find(run)] == [
        (first.incarnation, RunState.EXITED, 7),
        (second.incarnation, RunState.RUNNING, None),
    ]
    other.kill(run, grace_seconds=5)
    assert [found.exit_code for found in other.find(run)] == [7, 143]


def test_a_shim_becomes_no_zombie_and_causes_no_warning(runner: LocalRunner, run: str) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    shim = record(wait_until_up(runner, submitted))["pid"]
    gc.collect()  # a ResourceWarning is an error in this suite
    os.kill(shim, signal.SIGTERM)
    wait_for(runner, run, RunState.EXITED)
    wait_until(lambda: runner.poll_many([]) == {} and not Path(f"/proc/{shim}").exists(), 10, "reaping")


def test_a_shim_is_reaped_although_its_run_is_not_polled_any_more(runner: LocalRunner, run: str) -> None:
    for number in range(2):  # the second one after all children had ended
        submitted = request(f"{run}-{number}", SLEEPS)
        runner.submit(submitted)
        shim = record(wait_until_up(runner, submitted))["pid"]
        os.kill(shim, signal.SIGTERM)
        wait_until(lambda: not Path(f"/proc/{shim}").exists(), 20, "it is reaped")  # noqa: B023 - now


def test_many_runs_are_polled_without_a_look_at_all_processes(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def look() -> list[RunProcess]:
        looks.append("look")
        return run_processes()

    monkeypatch.setattr("spark_runner.runners.submission_state.run_processes", look)
    submitted, ended = request(run, SLEEPS), request(f"{run}-ended")
    runner.submit(ended)
    wait_for(runner, ended.run, RunState.EXITED)
    looks.clear()  # a poll that meets a shim at its end may read it
    runner.submit(submitted)
    wait_until_up(runner, submitted)
    states = runner.poll_many([run, ended.run, "unknown"])
    assert [[found.state for found in states[key]] for key in (run, ended.run, "unknown")] == [
        [RunState.RUNNING],
        [RunState.EXITED],
        [],
    ]
    assert looks == []
    lose_shim(directory(runner, submitted))
    wait_for(runner, run, RunState.GONE)
    looks.clear()
    runner.poll_many([run, run, run])
    assert len(looks) == 1


def test_a_submission_that_is_just_starting_runs_and_an_old_one_without_shim_is_gone(
    runner: LocalRunner, run: str
) -> None:
    submitted = request(run)
    runner.submit(submitted)
    wait_for(runner, run, RunState.EXITED)
    wait_until(lambda: not processes_of(run), 10, "the end of the shim")
    path = directory(runner, submitted)
    (path / "exit.json").unlink()
    (path / "shim.json").unlink()
    assert runner.find(run)[0].state is RunState.RUNNING
    os.utime(path / "plan.json", (0, 0))
    assert runner.find(run)[0].state is RunState.GONE


def test_a_submission_of_another_boot_is_gone(runner: LocalRunner, run: str) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    path = wait_until_up(runner, submitted)
    (path / "shim.json").write_text(json.dumps(record(path) | {"boot": "another"}), "utf-8")
    assert runner.find(run)[0].state is RunState.GONE


_LOOK = """
import json, sys
from pathlib import Path
from spark_runner.protocol.errors import KillError
from spark_runner.runners.base import SubmissionPlace
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
runner = LocalRunner(SparkSubmits(Path(sys.argv[1])), driver_main=Path("unused"))
try:
    runner.kill(sys.argv[2], grace_seconds=0)
    killed = "killed"
except KillError as error:
    killed = str(error)
place = SubmissionPlace.of(json.loads(sys.argv[3]))
reaches = [runner.reaches(place), runner.reaches(place.of_files)]
print(json.dumps([runner.find(sys.argv[2])[0].state, killed, reaches]))
"""


def look_from_another_pid_namespace(runner: LocalRunner, run: str) -> list[Any]:
    """A run as a worker in another container handles it: its state, a kill, and the runners in its reach."""
    place = json.dumps(runner.place().to_json())
    look = [sys.executable, "-c", _LOOK, str(runner.submits.state_dir), run, place]
    found: list[Any] = json.loads(subprocess.check_output([*IN_ANOTHER_PID_NAMESPACE, *look], text=True))
    return found


@pytest.mark.usefixtures("pid_namespaces")
def test_a_driver_in_another_pid_namespace_is_unknown_out_of_reach_and_never_gone_until_its_shim_says_so(
    runner: LocalRunner, run: str
) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    path = wait_until_up(runner, submitted)
    state, killed, reaches = look_from_another_pid_namespace(runner, run)
    assert state == RunState.UNKNOWN
    assert "another PID namespace of this host" in killed
    assert reaches == [False, True], "its processes are out of reach, and its files are not"
    assert runner.find(run)[0].state is RunState.RUNNING
    os.kill(record(path)["pid"], signal.SIGTERM)
    wait_for(runner, run, RunState.EXITED)
    state, killed, _ = look_from_another_pid_namespace(runner, run)
    assert (state, killed) == (RunState.EXITED, "killed")


def test_a_damaged_file_is_unknown_with_the_reason(runner: LocalRunner, run: str) -> None:
    submitted = request(run)
    runner.submit(submitted)
    wait_for(runner, run, RunState.EXITED)
    (directory(runner, submitted) / "exit.json").write_text("{", "utf-8")
    (found,) = runner.find(run)
    assert found.state is RunState.UNKNOWN
    assert "JSONDecodeError" in found.detail
    with pytest.raises(SparkRunnerError, match="unknown"):
        runner.cleanup(run)


def test_a_lost_shim_is_gone_only_when_its_driver_is(runner: LocalRunner, run: str) -> None:
    submitted = request(run, SURVIVES_SHIM)
    runner.submit(submitted)
    path = wait_until_up(runner, submitted)
    driver = record(path)["child"]["pid"]
    lose_shim(path)
    wait_until(lambda: processes_of(run) == [driver], 10, "the end of the shim")
    assert runner.find(run)[0].state is RunState.RUNNING
    os.kill(driver, signal.SIGKILL)
    assert wait_for(runner, run, RunState.GONE).exit_code is None


def test_the_last_output_of_a_failed_shim_is_reported(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.runners.spark_submits.shim.__file__", "/no/such/shim.py")
    submitted = request(run)
    runner.submit(submitted)
    wait_until(lambda: not processes_of(run), 10, "the end of the shim")
    plan = runner.submits.state_dir / "runs" / run / submitted.incarnation / "plan.json"  # no log names it
    os.utime(plan, (0, 0))
    (found,) = runner.find(run)
    assert found.state is RunState.GONE
    assert "/no/such/shim.py" in found.detail
