"""`orchestrator worker drain` and `worker list`, as an operator types them."""

import re
from pathlib import Path

import pytest

from orchestrator.model.states import Queue
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import (
    COMMAND,
    COMMAND_TIMEOUT_S,
    SPARK_TIMEOUT_S,
    Running,
    Shell,
    assert_nothing_is_left,
    has_started,
    program_that_waits,
)
from tests.acceptance.terminal import Terminal
from tests.operators_support import JOB, Stage
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def started(tmp_path: Path) -> Path:
    return tmp_path / "starts"


@pytest.fixture
def go_on(tmp_path: Path) -> Path:
    return tmp_path / "go-on"


def worker_with_driver(shell: Shell, started: Path, go_on: Path) -> tuple[Running, str]:
    """A worker whose driver waits for the file `go_on`, and its name."""
    shell.environment["ORCHESTRATOR_SESSION_TIMEOUT"] = "4s"
    worker = shell.start("worker", "--slots", "2", "--pool", "default=3", "--pool", "reports")
    shell.python_job("waits", program_that_waits(started, go_on))
    assert shell.type("job", "submit", "waits.yaml", "--id", "waits").code == 0
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the program runs")
    return worker, name_of(worker)


def name_of(worker: Running) -> str:
    worker.wait_for_words(" slot")
    found = re.search(r"worker (\S+) serves", worker.stderr)
    assert found is not None, worker.stderr
    return found[1]


def test_a_worker_ends_after_its_drivers_and_the_command_shows_what_is_left(
    stand_in_shell: Shell, started: Path, go_on: Path, process_mark: str
) -> None:
    shell = stand_in_shell
    worker, name = worker_with_driver(shell, started, go_on)
    drain = shell.start("worker", "drain", name)
    drain.wait_for_words("1 job left: waits")
    assert shell.type("job", "submit", "waits.yaml", "--id", "later").code == 0
    (row,) = shell.type("worker", "list", "-o", "json").json()
    assert (row["name"], row["draining"], row["slots"]) == (name, True, 2)
    assert row["pools"] == {"default": 3, "reports": 1}
    table = shell.type("cluster", "status").stdout
    assert "draining, 1 left" in table
    assert "default=3, reports" in table
    go_on.touch()
    ended = drain.wait()
    assert (ended.code, ended.stdout) == (0, ""), ended.stderr
    assert f"worker {name} has drained and ended" in ended.stderr
    done = worker.wait()
    assert done.code == 0, done.stderr
    assert f"worker {name} drains, as " in done.stderr
    assert "has released its jobs" in done.stderr
    assert shell.job("later")["queue"] == "accept"
    assert shell.type("job", "wait", "waits").code == 0
    assert_error(shell.type("worker", "drain", name), 4, f"there is no worker '{name}'", "none")
    assert_nothing_is_left(process_mark)


def test_a_worker_killed_in_its_drain_is_reported_and_the_next_one_adopts_its_driver(
    stand_in_shell: Shell, started: Path, go_on: Path, process_mark: str
) -> None:
    shell = stand_in_shell
    worker, name = worker_with_driver(shell, started, go_on)
    drain = shell.start("worker", "drain", name)
    drain.wait_for_words("1 job left: waits")
    worker.kill()
    following = shell.start("worker", "--slots", "1")
    ended = drain.wait(COMMAND_TIMEOUT_S)
    assert ended.code == 1, ended.stderr
    assert f"worker {name} is gone before its drivers have ended" in ended.stderr
    following.wait_for_words(f"adopted the driver of waits, attempt 1, from worker {name}")
    go_on.touch()
    assert shell.type("job", "wait", "waits", "--timeout", "60s", timeout=90).code == 0
    following.terminate()
    assert following.wait().code == 0
    assert_nothing_is_left(process_mark)


def test_a_drain_that_is_cancelled_lets_the_worker_work_on(stand_in_shell: Shell, process_mark: str) -> None:
    shell = stand_in_shell
    worker = shell.start("worker", "--slots", "1")
    name = name_of(worker)
    assert_error(shell.type("worker", "drain", name, "--cancel"), 5, "is not asked to drain")
    assert_error(shell.type("worker", "drain", name, "--cancel", "--no-wait"), 2, "leave out --no-wait")
    # A worker without a job ends soon after a request: this one has a job that waits for nothing.
    shell.python_job("sleeps", "import time; time.sleep(600)")
    assert shell.type("job", "submit", "sleeps.yaml", "--id", "sleeps").code == 0
    wait_until(lambda: shell.job("sleeps")["queue"] == "running", SPARK_TIMEOUT_S, "it runs")
    assert shell.type("worker", "drain", name, "--no-wait").code == 0
    waiter = shell.start("worker", "drain", name)
    waiter.wait_for_words("is already asked to drain")
    waiter.wait_for_words("1 job left")
    assert shell.type("worker", "drain", name, "--cancel").code == 0
    ended = waiter.wait()
    assert (ended.code, "was cancelled" in ended.stderr) == (1, True), ended.stderr
    worker.wait_for_words("drains no more")
    assert shell.type("job", "kill", "sleeps").code == 0
    assert shell.type("job", "wait", "sleeps").code == 1
    worker.terminate()
    assert worker.wait().code == 0
    assert_nothing_is_left(process_mark)


def test_a_terminal_shows_one_line_and_names_streams_and_ctrl_c_ends_only_the_wait(
    shared_shell: Shell, stage: Stage
) -> None:
    stage.put(Queue.RUNNING, mode="streaming")
    announced = {"host": "here", "drains": True, "slots": 4, "used": 1, "held": 2, "running": 2}
    others = [f"a-job-with-a-rather-long-name-{number}" for number in range(4)]
    draining = {"since": "2026-11-30T06:00:00Z", "by": "someone"}
    stage.make(stage.nodes.worker("w"), {**announced, "jobs": [JOB, *others], "draining": draining})
    command = [*COMMAND, "worker", "drain", "here"]
    with Terminal(command, shared_shell.directory, {**shared_shell.environment, "LINES": "24"}) as terminal:
        wait_until(lambda: "micro-batch" in terminal.text(), COMMAND_TIMEOUT_S, "the stream is named")
        wait_until(lambda: "jobs left" in terminal.text(), COMMAND_TIMEOUT_S, "what is left is shown")
        terminal.type(b"\x03")
        assert terminal.exit_code() == 130, terminal.text()
        text = terminal.text().replace("^C", "")
    assert f"job kill --graceful {JOB}" in text
    assert text.count("never ends by itself") == 1
    assert "the worker drains on" in text
    assert max(len(line) for line in re.split(r"[\r\n]+", text) if "jobs left" in line) <= 120
    assert stage.is_there(stage.nodes.drain("w"))
