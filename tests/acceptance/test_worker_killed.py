"""A worker ends in any way: its drivers continue, and the next worker adopts them.

One test has a real Spark driver; the drivers of the others are stand-ins.
"""

from pathlib import Path

import pytest

from tests.acceptance.support import (
    SPARK_TIMEOUT_S,
    Running,
    Shell,
    assert_no_traceback,
    assert_nothing_is_left,
    has_started,
    program_that_waits,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

SESSION = {"ORCHESTRATOR_SESSION_TIMEOUT": "4s"}
ADOPTED_S = 60
"""The lock exists until the end of the session of the killed worker; a rescan then finds the job."""


@pytest.fixture
def started(tmp_path: Path) -> Path:
    return tmp_path / "starts"


@pytest.fixture
def go_on(tmp_path: Path) -> Path:
    return tmp_path / "go-on"


def worker_with_driver(shell: Shell, started: Path, go_on: Path) -> Running:
    """A worker whose driver waits for the file `go_on`."""
    shell.environment |= SESSION
    worker = shell.start("worker", "--slots", "1")
    shell.python_job("waits", program_that_waits(started, go_on))
    assert shell.type("job", "submit", "waits.yaml", "--id", "waits").code == 0
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the program runs")
    return worker


@pytest.mark.spark
def test_a_job_outlives_its_worker_killed_by_9(
    shared_shell: Shell, started: Path, go_on: Path, process_mark: str
) -> None:
    first = worker_with_driver(shared_shell, started, go_on)
    first.kill()
    assert driver_is_alive(shared_shell)
    second = shared_shell.start("worker", "--slots", "1")
    assert_adopted_by(second, shared_shell, started, go_on)
    assert_nothing_is_left(process_mark)


def test_a_job_outlives_its_worker_killed_by_9_and_a_second_worker_adopts_it(
    stand_in_shell: Shell, started: Path, go_on: Path, process_mark: str
) -> None:
    first = worker_with_driver(stand_in_shell, started, go_on)
    second = stand_in_shell.start("worker", "--slots", "1")
    second.wait_for_words("1 slot")
    first.kill()
    assert_adopted_by(second, stand_in_shell, started, go_on)
    assert_nothing_is_left(process_mark)


def assert_adopted_by(second: Running, shell: Shell, started: Path, go_on: Path) -> None:
    """The job of the killed worker is adopted by `second`, which runs it to its end."""
    # Adopted while it runs: the end of the driver must not be the trigger.
    owner = f"-{second.pid}-"
    wait_until(
        lambda: owner in str(shell.job("waits")["held_by"]), ADOPTED_S, "the second worker holds the job"
    )
    assert driver_is_alive(shell)
    go_on.touch()
    waited = shell.type("job", "wait", "waits", "--timeout", "60s")
    assert waited.code == 0, waited.stderr
    assert_one_start_in_all(shell, started)
    assert "went on" in shell.type("job", "logs", "waits", "--stream", "stdout").stdout
    second.terminate()
    assert second.wait().code == 0


def test_a_job_that_ends_without_a_worker_is_concluded_by_the_next_worker(
    stand_in_shell: Shell, started: Path, go_on: Path, process_mark: str
) -> None:
    shell = stand_in_shell
    first = worker_with_driver(shell, started, go_on)
    first.kill()
    go_on.touch()
    wait_until(lambda: not driver_is_alive(shell), 60, "the driver has ended")
    assert shell.job("waits")["status"] == "RUNNING"
    second = shell.start("worker")
    assert shell.type("job", "wait", "waits", "--timeout", "60s").code == 0
    assert_one_start_in_all(shell, started)
    second.terminate()
    assert second.wait().code == 0
    assert_nothing_is_left(process_mark)


def test_term_leaves_the_driver_running_for_the_next_worker(
    stand_in_shell: Shell, started: Path, go_on: Path, process_mark: str
) -> None:
    shell = stand_in_shell
    first = worker_with_driver(shell, started, go_on)
    first.terminate()
    drained = first.wait(30)
    assert drained.code == 0, drained.stderr
    assert_no_traceback(drained.stderr)
    job = shell.job("waits")
    assert (job["status"], job["queue"], job["held_by"]) == ("RUNNING", "running", None)
    assert job["progress"] is not None, "the driver holds its attempt"
    assert driver_is_alive(shell)
    second = shell.start("worker")
    go_on.touch()
    assert shell.type("job", "wait", "waits", "--timeout", "60s").code == 0
    assert_one_start_in_all(shell, started)
    second.terminate()
    assert second.wait().code == 0
    assert_nothing_is_left(process_mark)


def driver_is_alive(shell: Shell) -> bool:
    """Whether the shim has not yet written that its driver has ended."""
    (submission,) = shell.submissions()
    return not (submission / "exit.json").exists()


def assert_one_start_in_all(shell: Shell, started: Path) -> None:
    job = shell.job("waits")
    assert (job["status"], job["queue"], job["attempt"]) == ("SUCCESS", "finish", 1)
    assert [attempt["state"] for attempt in job["attempts"]] == ["succeeded"]
    assert started.read_text("utf-8") == "started\n"
    assert len(shell.submissions()) == 1
