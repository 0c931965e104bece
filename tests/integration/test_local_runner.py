import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_runner.errors import KillError, SparkRunnerError, SubmissionError
from spark_runner.process import RunProcess, current_boot_id, processes_of, run_processes
from spark_runner.runners import local, local_kill
from spark_runner.runners.base import Place, Runner, RunState, SubmitRequest
from spark_runner.runners.local import LocalRunner
from tests.waiting import wait_until

# Stands in for spark-submit: runs the last two arguments, driver and plan, in plain Python.
STAND_IN = (
    sys.executable,
    "-c",
    "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[-2:]])",
)
DRIVER = "import json, sys; exec(json.load(open(sys.argv[1]))['code'])"
SLEEPS = "import time; print('up', flush=True); time.sleep(60)"
IGNORES_TERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}"


@pytest.fixture
def run() -> Iterator[str]:
    run = f"{uuid.uuid4()}-1"
    yield run
    for pid in processes_of(run):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(run), 10, "the end of all processes of the test")


@pytest.fixture
def driver_main(tmp_path: Path) -> Path:
    path = tmp_path / "driver.py"
    path.write_text(DRIVER, "utf-8")
    return path


@pytest.fixture
def runner(tmp_path: Path, driver_main: Path) -> LocalRunner:
    return LocalRunner(tmp_path / "state", driver_main=driver_main, spark_submit=STAND_IN)


def request(run: str, code: str = "", **more: Any) -> SubmitRequest:
    return SubmitRequest(run, str(uuid.uuid4()), "a name", {"code": code}, master="local[1]", **more)


def directory(runner: LocalRunner, submitted: SubmitRequest) -> Path:
    (log,) = {
        log.path.parent for log in runner.logs(submitted.run) if log.incarnation == submitted.incarnation
    }
    return log


def wait_for(runner: Runner, run: str, state: RunState) -> Any:
    wait_until(lambda: runner.find(run)[-1].state is state, 20, f"{state}")
    return runner.find(run)[-1]


def wait_until_up(runner: LocalRunner, submitted: SubmitRequest) -> Path:
    def up() -> bool:
        return any(
            log.incarnation == submitted.incarnation and log.stream == "stdout" and log.path.read_bytes()
            for log in runner.logs(submitted.run)
        )

    wait_until(up, 20, "words of the driver")
    return directory(runner, submitted)


def record(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((path / "shim.json").read_bytes())
    return read


def lose_shim(path: Path) -> None:
    """Kill the shim under a driver that survives it: as one does whose PDEATHSIG was cleared."""
    os.kill(record(path)["pid"], signal.SIGKILL)


SURVIVES_SHIM = f"import ctypes; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); {SLEEPS}"


def test_a_runner_is_what_the_protocol_asks_for(runner: LocalRunner) -> None:
    protocol: Runner = runner
    place = protocol.place()
    assert place == Place("local", socket.gethostname(), current_boot_id())
    assert protocol.reaches(replace(place, boot="an older one"))
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


def test_logs_are_found_and_streams_kept_apart(runner: LocalRunner, run: str) -> None:
    runner.submit(request(run, "import sys; print('out'); print('err', file=sys.stderr)"))
    wait_for(runner, run, RunState.EXITED)
    assert {log.stream: log.path.read_text("utf-8") for log in runner.logs(run)} == {
        "stdout": "out\n",
        "stderr": "err\n",
    }


def test_names_and_places_are_in_the_environment_and_the_users_own_too(
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


def test_a_remote_master_is_not_told_that_the_driver_is_on_loopback(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    submitted = replace(
        request(run, "import os; print(os.environ.get('SPARK_LOCAL_IP'))"), master="spark://h:7077"
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
        ({"conf": {"hive.x": "1"}}, "do not start with `spark.`: hive.x"),
        ({"plan": {"x": object()}}, "not JSON serializable"),
        ({"environment": {"A": "\0"}}, "null byte"),
    ],
)
def test_what_cannot_be_started_is_refused_and_leaves_no_submission(
    runner: LocalRunner, run: str, change: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(SubmissionError, match=message):
        runner.submit(replace(request(run), **change))
    assert runner.find(run) == []


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path, driver_main: Path, run: str) -> None:
    (tmp_path / "state").touch()
    runner = LocalRunner(tmp_path / "state", driver_main=driver_main, spark_submit=STAND_IN)
    with pytest.raises(SubmissionError, match=str(tmp_path / "state")):
        runner.submit(request(run))


def test_a_missing_spark_is_told(
    tmp_path: Path, driver_main: Path, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(SubmissionError, match=f"{tmp_path}/bin/spark-submit"):
        LocalRunner(tmp_path / "state", driver_main=driver_main).submit(request(run))


def test_the_same_incarnation_is_not_started_twice(runner: LocalRunner, run: str) -> None:
    submitted = request(run)
    runner.submit(submitted)
    with pytest.raises(SubmissionError, match="File exists"):
        runner.submit(submitted)
    assert wait_for(runner, run, RunState.EXITED).exit_code == 0


def test_submissions_are_found_oldest_first_by_any_runner_of_the_directory(
    runner: LocalRunner, run: str, tmp_path: Path, driver_main: Path
) -> None:
    first, second = request(run, "raise SystemExit(7)"), request(run, SLEEPS)
    runner.submit(first)
    wait_for(runner, run, RunState.EXITED)
    runner.submit(second)
    wait_until_up(runner, second)
    other = LocalRunner(tmp_path / "state", driver_main=driver_main)
    assert [(found.incarnation, found.state, found.exit_code) for found in other.find(run)] == [
        (first.incarnation, RunState.EXITED, 7),
        (second.incarnation, RunState.RUNNING, None),
    ]
    other.kill(run, grace_seconds=5)
    assert [found.exit_code for found in other.find(run)] == [7, 143]


def test_a_shim_becomes_no_zombie_and_warns_nobody(runner: LocalRunner, run: str) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    shim = record(wait_until_up(runner, submitted))["pid"]
    gc.collect()  # a ResourceWarning is an error in this suite
    os.kill(shim, signal.SIGTERM)
    wait_for(runner, run, RunState.EXITED)
    wait_until(lambda: runner.poll_many([]) == {} and not Path(f"/proc/{shim}").exists(), 10, "reaping")


def test_many_runs_are_polled_without_a_look_at_all_processes(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def look() -> list[RunProcess]:
        looks.append("look")
        return run_processes()

    monkeypatch.setattr("spark_runner.runners.local.run_processes", look)
    submitted, ended = request(run, SLEEPS), request(f"{run}-ended")
    runner.submit(ended)
    wait_for(runner, ended.run, RunState.EXITED)
    looks.clear()  # a poll that meets a shim in its last moment may look
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


def test_the_last_words_of_a_shim_that_failed_are_told(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.runners.local.shim.__file__", "/no/such/shim.py")
    submitted = request(run)
    runner.submit(submitted)
    wait_until(lambda: not processes_of(run), 10, "the end of the shim")
    plan = runner._state_dir / "runs" / run / submitted.incarnation / "plan.json"  # noqa: SLF001  # no log names it
    os.utime(plan, (0, 0))
    (found,) = runner.find(run)
    assert found.state is RunState.GONE
    assert "/no/such/shim.py" in found.detail


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
    assert runner.find(run)[0].exit_code == 137
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
    monkeypatch.setattr(local_kill, "SHIM_SECONDS", 0.2)
    monkeypatch.setattr(local_kill, "FORCED_SECONDS", 0.5)
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
    start = LocalRunner._start_shim  # noqa: SLF001  # the moment before it is what this test is about

    def killed_before_start(self: LocalRunner, *arguments: Any) -> None:
        runner.kill(run, grace_seconds=0)
        assert runner.find(run)[0].state is RunState.GONE
        start(self, *arguments)

    monkeypatch.setattr(LocalRunner, "_start_shim", killed_before_start)
    runner.submit(submitted)
    assert wait_for(runner, run, RunState.EXITED).exit_code == 143
    assert (directory(runner, submitted) / "stdout.log").read_bytes() == b""


def test_kill_of_an_unknown_run_is_nothing(runner: LocalRunner, run: str) -> None:
    runner.kill(run, grace_seconds=0)


def test_what_survives_everything_is_named(
    runner: LocalRunner, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_kill, "SHIM_SECONDS", 0.1)
    monkeypatch.setattr(local_kill, "FORCED_SECONDS", 0.1)
    monkeypatch.setattr(local_kill, "_send", lambda *_: None)  # as signals to another user's process
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
    owner = LocalRunner(tmp_path / "state", driver_main=driver_main, owned=True, spark_submit=STAND_IN)
    submitted = request(run, SLEEPS)
    owner.submit(submitted)
    wait_until_up(owner, submitted)
    owner.close()
    owner.close()
    assert wait_for(owner, run, RunState.EXITED).exit_code == 143
    wait_until(lambda: not processes_of(run), 10, "the end of the shim")


@pytest.mark.parametrize("owned", [True, False])
def test_a_killed_worker_takes_its_drivers_along_only_if_it_owns_them(
    tmp_path: Path, driver_main: Path, runner: LocalRunner, run: str, owned: bool
) -> None:
    submitted = request(run, SLEEPS)
    code = (
        "import os, signal; from pathlib import Path; from spark_runner.runners.base import SubmitRequest; "
        "from spark_runner.runners.local import LocalRunner; "
        f"LocalRunner(Path({str(tmp_path / 'state')!r}), driver_main=Path({str(driver_main)!r}), "
        f"owned={owned}, spark_submit={STAND_IN!r}).submit({submitted!r}); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(local.__file__).parents[2]
    worker = subprocess.run([sys.executable, "-c", code], cwd=root, check=False)
    assert worker.returncode == -signal.SIGKILL
    if owned:
        assert wait_for(runner, run, RunState.EXITED).exit_code == 143
    else:
        wait_until_up(runner, submitted)
        assert runner.find(run)[0].state is RunState.RUNNING
        runner.kill(run, grace_seconds=5)
    wait_until(lambda: not processes_of(run), 10, "the end of all")
