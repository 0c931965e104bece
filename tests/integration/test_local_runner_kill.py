import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.errors import KillError, SparkRunnerError
from spark_runner.protocol.process import processes_of
from spark_runner.runners import processes, spark_submits
from spark_runner.runners.base import RunState
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.runner_support import (
    IGNORES_TERM,
    SLEEPS,
    STAND_IN,
    SURVIVES_SHIM,
    directory,
    lose_shim,
    record,
    request,
    wait_for,
    wait_until_up,
)
from tests.waiting import wait_until


def test_kill_lets_the_driver_end_in_its_own_way(runner: LocalRunner, run: str) -> None:
    code = f"import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); {SLEEPS}"
    submitted = request(run, code)
    runner.submit(submitted)
    wait_until_up(runner, submitted)
    runner.kill(run, grace_seconds=30)
    assert processes_of(run) == []
    assert runner.find(run)[0].exit_code == 5


def test_kill_forces_a_driver_that_ignores_term_and_its_exit_is_known(runner: LocalRunner, run: str) -> None:
    submitted = request(run, IGNORES_TERM)
    runner.submit(submitted)
    path = wait_until_up(runner, submitted)
    (path / "scratch" / "blockmgr").mkdir()
    runner.kill(run, grace_seconds=0.2)
    assert processes_of(run) == []
    (found,) = runner.find(run)
    assert found.exit_code == 137
    assert found.ended == json.loads((path / "exit.json").read_text("ascii"))["ended"]
    assert not (path / "scratch").exists()


def test_kill_wakes_a_shim_that_was_stopped(runner: LocalRunner, run: str) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    os.kill(record(wait_until_up(runner, submitted))["pid"], signal.SIGSTOP)
    runner.kill(run, grace_seconds=30)
    assert runner.find(run)[0].exit_code == 143


def test_kill_without_the_shim_asks_first(runner: LocalRunner, run: str) -> None:
    asked = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('asked')))"
    submitted = request(run, f"{asked}; {SURVIVES_SHIM}")
    runner.submit(submitted)
    path = wait_until_up(runner, submitted)
    lose_shim(path)
    runner.kill(run, grace_seconds=30)
    assert (path / "stdout.log").read_text("utf-8") == "up\nasked\n"
    assert runner.find(run)[0].state is RunState.GONE


def test_kill_without_the_shim_forces_in_the_end(runner: LocalRunner, run: str) -> None:
    submitted = request(run, f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SURVIVES_SHIM}")
    runner.submit(submitted)
    lose_shim(wait_until_up(runner, submitted))
    runner.kill(run, grace_seconds=0.5)
    assert processes_of(run) == []
    assert runner.find(run)[0].state is RunState.GONE


def test_kill_forces_a_shim_that_hangs(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    shim = record(wait_until_up(runner, submitted))["pid"]
    monkeypatch.setattr(signal, "SIGCONT", 0)  # nothing wakes it
    monkeypatch.setattr(processes, "SHIM_SECONDS", 0.2)
    monkeypatch.setattr(processes, "FORCED_SECONDS", 0.5)
    os.kill(shim, signal.SIGSTOP)
    runner.kill(run, grace_seconds=0.2)
    assert processes_of(run) == []
    assert runner.find(run)[0].state is RunState.GONE


def test_kill_ends_every_submission(runner: LocalRunner, run: str) -> None:
    submissions = [request(run, SLEEPS), request(run, IGNORES_TERM)]
    for submitted in submissions:
        runner.submit(submitted)
    for submitted in submissions:
        wait_until_up(runner, submitted)
    runner.kill(run, grace_seconds=0.5)
    assert processes_of(run) == []
    assert [found.state for found in runner.find(run)] == [RunState.EXITED] * 2


def test_kill_overtakes_a_submission_that_is_just_starting(runner: LocalRunner, run: str) -> None:
    submitted = request(run, "print('user code ran')")
    runner.submit(submitted)
    runner.kill(run, grace_seconds=0)
    assert processes_of(run) == []
    assert runner.find(run)[0].state is not RunState.RUNNING


def test_a_shim_that_comes_after_the_kill_starts_no_driver(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted = request(run, "print('user code ran')")
    start = SparkSubmits._start_shim  # noqa: SLF001  # the moment before it is under test

    def killed_before_start(self: SparkSubmits, *arguments: Any) -> None:
        runner.kill(run, grace_seconds=0)
        assert runner.find(run)[0].state is RunState.GONE
        start(self, *arguments)

    monkeypatch.setattr(SparkSubmits, "_start_shim", killed_before_start)
    runner.submit(submitted)
    assert wait_for(runner, run, RunState.EXITED).exit_code == 143
    assert (directory(runner, submitted) / "stdout.log").read_bytes() == b""


def test_kill_of_an_unknown_run_is_nothing(runner: LocalRunner, run: str) -> None:
    runner.kill(run, grace_seconds=0)


def test_a_process_that_survives_every_signal_is_named(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "SHIM_SECONDS", 0.1)
    monkeypatch.setattr(processes, "FORCED_SECONDS", 0.1)
    monkeypatch.setattr(processes, "_send", lambda *_: None)  # as signals to another user's process
    with subprocess.Popen(["sleep", "60"], env=os.environ | {"ORCHESTRATOR_RUN": run}) as process:
        with pytest.raises(KillError, match=f"{run} .*: {process.pid}$"):
            runner.kill(run, grace_seconds=0.1)
        process.kill()


def test_cleanup_removes_what_ended_and_refuses_what_runs(runner: LocalRunner, run: str) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    path = wait_until_up(runner, submitted)
    with pytest.raises(SparkRunnerError, match="is running"):
        runner.cleanup(run)
    runner.kill(run, grace_seconds=5)
    runner.cleanup(run)
    assert not path.parent.exists()
    assert runner.find(run) == []
    runner.cleanup(run)


def test_owned_drivers_end_with_their_runner(tmp_path: Path, driver_main: Path, run: str) -> None:
    owner = LocalRunner(
        SparkSubmits(tmp_path / "state", owned=True, spark_submit=STAND_IN), driver_main=driver_main
    )
    submitted = request(run, SLEEPS)
    owner.submit(submitted)
    wait_until_up(owner, submitted)
    owner.submits.close()
    owner.submits.close()
    assert wait_for(owner, run, RunState.EXITED).exit_code == 143
    wait_until(lambda: not processes_of(run), 10, "the end of the shim")


@pytest.mark.parametrize("owned", [True, False])
def test_a_killed_worker_takes_its_drivers_along_only_if_it_owns_them(
    tmp_path: Path, driver_main: Path, runner: LocalRunner, run: str, owned: bool
) -> None:
    submitted = request(run, SLEEPS)
    code = (
        "import os, signal; from pathlib import Path; "
        "from spark_runner.runners.base import SparkTarget, SubmitRequest; "
        "from spark_runner.runners.local import LocalRunner; "
        "from spark_runner.runners.spark_submits import SparkSubmits; "
        f"LocalRunner(SparkSubmits(Path({str(tmp_path / 'state')!r}), "
        f"owned={owned}, spark_submit={STAND_IN!r}), "
        f"driver_main=Path({str(driver_main)!r})).submit({submitted!r}); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(spark_submits.__file__).parents[2]
    worker = subprocess.run([sys.executable, "-c", code], cwd=root, check=False)
    assert worker.returncode == -signal.SIGKILL
    if owned:
        assert wait_for(runner, run, RunState.EXITED).exit_code == 143
    else:
        wait_until_up(runner, submitted)
        assert runner.find(run)[0].state is RunState.RUNNING
        runner.kill(run, grace_seconds=5)
    wait_until(lambda: not processes_of(run), 10, "the end of all")
