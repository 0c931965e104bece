"""Ctrl-C at any moment: exit code 130, no process left, and every job in its true state."""

import re
import socket
import time
from pathlib import Path

import pytest

from queues import running_server
from queues.embedded.config import STATE_FOLDER
from queues.embedded.java import find_java
from tests.acceptance.support import (
    COMMAND,
    FINAL_STATUSES,
    SPARK_TIMEOUT_S,
    Ended,
    Shell,
    assert_no_traceback,
    assert_nothing_is_left,
    has_started,
    program_that_waits,
)
from tests.acceptance.terminal import HIDE_CURSOR, Terminal
from tests.sampling import chance, is_whole, times
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

CTRL_C = b"\x03"

ENDS_WITHIN_S = 60
"""Grace of the driver, end of Spark, end of ZooKeeper: 5 s, more beside other tests."""

SPAN_S = (0.3, 12.0)
"""From the start of the interpreter to a running program; another test waits for that point."""

WHOLE_SPAN_S = (0.3, 25.0)
"""The same for a whole campaign, possibly on a slow machine."""


SUBMITTED_AFTER_S = 3.0
"""In `up`: before that there is no job to interrupt."""


def moments(command: str, count: int, count_of_whole: int) -> list[float]:
    """Random moments seeded by the date of the commit, denser at the start, which has the most steps.

    One from each part, so that none is missed: the loading of the program, ZooKeeper's start, the intent,
    Spark's start, the running program.
    """
    drawn, parts = chance(f"interrupt {command}"), times(count, count_of_whole)
    begin, end = WHOLE_SPAN_S if is_whole() else SPAN_S
    shares = [((part + drawn.random()) / parts) ** 2 for part in range(parts)]
    return [round(begin + share * (end - begin), 2) for share in shares]


@pytest.fixture
def started(tmp_path: Path) -> Path:
    return tmp_path / "starts"


@pytest.fixture
def endless(shell: Shell, tmp_path: Path, started: Path) -> Path:
    """A job that does not end by itself."""
    return shell.python_job("endless", program_that_waits(started, tmp_path / "never"))


# ---------------------------------------------------------------------- run
@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.parametrize("moment", moments("run", 2, 20))
def test_run_ends_clean_at_any_moment(shell: Shell, endless: Path, process_mark: str, moment: float) -> None:
    run = shell.start("run", str(endless), "--id", "endless")
    # The only plain sleep of these tests: the moment itself is the parameter.
    time.sleep(moment)
    run.press_ctrl_c()
    assert_interrupted(run.wait(ENDS_WITHIN_S))
    assert_nothing_is_left(process_mark)
    assert_all_final(shell)


def test_run_forgives_an_impatient_user(
    shell: Shell, endless: Path, started: Path, process_mark: str
) -> None:
    shell.use_stand_ins()
    run = shell.start("run", str(endless), "--id", "endless")
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the program runs")

    def press_and_look() -> bool:
        run.press_ctrl_c()
        return run.has_ended

    wait_until(press_and_look, ENDS_WITHIN_S, "the command ends under repeated Ctrl-C")
    assert_interrupted(run.wait())
    assert_nothing_is_left(process_mark)
    assert_all_final(shell)


@pytest.mark.parametrize(
    ("command", "asked"),
    [("up", "-version"), ("run", "QuorumPeerMain")],  # both start their server with the same code
    ids=["java-version-up", "zookeeper-start-run"],
)
def test_while_java_starts(shell: Shell, endless: Path, process_mark: str, command: str, asked: str) -> None:
    """Phases of a tenth of a second, prolonged until the signal arrives in them."""
    home, seen = slow_java(shell, asked)
    arguments = ["run", str(endless)] if command == "run" else ["up"]
    pressed = shell.start(*arguments, JAVA_HOME=str(home))
    wait_until(seen.exists, 30, f"java {asked} has begun")
    pressed.press_ctrl_c()
    (shell.directory / "fast").touch()
    assert_interrupted(pressed.wait(ENDS_WITHIN_S))
    assert_nothing_is_left(process_mark)
    assert_all_final(shell)


@pytest.mark.parametrize("command", ["run", "worker"])
def test_while_zookeeper_is_looked_for(shell: Shell, endless: Path, process_mark: str, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never answers
        silent.settimeout(30)
        hosts = f"127.0.0.1:{silent.getsockname()[1]}"
        arguments = ["run", str(endless)] if command == "run" else ["worker"]
        pressed = shell.start(*arguments, ZOOKEEPER_HOSTS=hosts)
        connection, _ = silent.accept()
        with connection:
            pressed.press_ctrl_c()
            assert_interrupted(pressed.wait(ENDS_WITHIN_S))
    assert_nothing_is_left(process_mark)


def slow_java(shell: Shell, asked: str) -> tuple[Path, Path]:
    """A JAVA_HOME whose `java` waits for a file on this argument, and the file that shows that it waits."""
    home, seen, fast = shell.directory / "java", shell.directory / "seen", shell.directory / "fast"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    waits = f"touch '{seen}'; while [ ! -e '{fast}' ]; do sleep 0.1; done"
    program.write_text(f'#!/bin/sh\ncase "$*" in *{asked}*) {waits};; esac\nexec {find_java().path} "$@"\n')
    program.chmod(0o755)
    return home, seen


# ---------------------------------------------------------------------- up
@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.parametrize("moment", moments("up", 1, 8))
def test_up_ends_clean_at_any_moment(shell: Shell, endless: Path, process_mark: str, moment: float) -> None:
    began = time.monotonic()
    up = shell.start("up", "--slots", "1")
    submitted = moment > SUBMITTED_AFTER_S
    if submitted:
        up.wait_for_words("Ctrl-C ends them")
        for job_id in ("first", "second"):
            assert shell.type("job", "submit", str(endless), "--id", job_id).code == 0
    # As above: the moment is the parameter.
    time.sleep(max(0.0, began + moment - time.monotonic()))
    up.press_ctrl_c()
    assert_interrupted(up.wait(ENDS_WITHIN_S))
    assert_nothing_is_left(process_mark)
    assert running_server(shell.state_dir / "zookeeper") is None
    if submitted:
        statuses = {job["id"]: job["status"] for job in shell.jobs()}
        assert statuses.keys() == {"first", "second"}
        assert set(statuses.values()) <= FINAL_STATUSES | {"ACCEPT"}, statuses


def test_up_kills_what_runs_and_keeps_what_waits(
    shell: Shell, endless: Path, started: Path, process_mark: str
) -> None:
    shell.use_stand_ins()
    up = shell.start("up", "--slots", "1")
    up.wait_for_words("Ctrl-C ends them")
    shell.python_job("short", "print('my turn')\n")
    assert shell.type("job", "submit", str(endless), "--id", "runs").code == 0
    assert shell.type("job", "submit", "short.yaml", "--id", "waits").code == 0
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the first job runs")
    up.press_ctrl_c()
    assert_interrupted(up.wait(ENDS_WITHIN_S))
    assert_nothing_is_left(process_mark)
    assert {job["id"]: job["status"] for job in shell.jobs()} == {"runs": "KILL", "waits": "ACCEPT"}

    again = shell.start("up", "--slots", "1")
    again.wait_for_words("Ctrl-C ends them")
    assert shell.type("job", "wait", "waits", "--timeout", "100s").code == 0
    assert "my turn" in shell.type("job", "logs", "waits").stdout
    again.press_ctrl_c()
    assert_interrupted(again.wait(ENDS_WITHIN_S))
    assert_nothing_is_left(process_mark)
    assert started.read_text("utf-8") == "started\n"


# ---------------------------------------------------------------------- those that only look
def test_watching_ends_clean_and_with_it_the_server_that_it_started(shell: Shell, process_mark: str) -> None:
    up = shell.start("up")
    up.wait_for_words("Ctrl-C ends them")
    up.terminate()
    assert up.wait(ENDS_WITHIN_S).code == 143, "TERM, as a shell reports it"
    watching = shell.start("queue", "list", "-o", "jsonl", "--watch", "0.5")
    wait_until(lambda: watching.stdout.count("accept") > 1, 30, "the queues are shown a second time")
    watching.press_ctrl_c()
    assert_interrupted(watching.wait(ENDS_WITHIN_S))
    assert_nothing_is_left(process_mark)


# ---------------------------------------------------------------------- a real terminal
@pytest.mark.spark
def test_ctrl_c_typed_at_a_terminal_while_the_program_runs(
    shell: Shell, endless: Path, started: Path, process_mark: str
) -> None:
    command = [*COMMAND, "run", str(endless), "--id", "endless"]
    with Terminal(command, shell.directory, shell.environment) as terminal:
        wait_until(lambda: "running endless.py" in terminal.text(), SPARK_TIMEOUT_S, "its state is drawn")
        wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the program runs")
        terminal.type(CTRL_C)
        wait_until(lambda: terminal.is_closed, ENDS_WITHIN_S, "the terminal is given back")
        assert terminal.exit_code() == 130, terminal.text()
        assert_no_traceback(terminal.text())
        for queue in ("accept", "running", "kill", "finish"):
            assert re.search(rf"[✓✗] {queue} ", terminal.text()), terminal.text()
        drawn = terminal.raw()
        assert HIDE_CURSOR not in drawn, "no end can leave the terminal without its cursor"
    assert_nothing_is_left(process_mark)
    job = shell.job("endless")
    assert (job["status"], job["queue"]) == ("KILL", "finish")
    assert [attempt["state"] for attempt in job["attempts"]] == ["killed"]
    assert started.read_text("utf-8") == "started\n"


# ---------------------------------------------------------------------- what is expected
def assert_interrupted(ended: Ended) -> None:
    assert ended.code == 130, ended
    assert_no_traceback(ended.stderr)


def assert_all_final(shell: Shell) -> None:
    """Every job that was created has ended, and is in finish alone."""
    if not (shell.state_dir / "zookeeper" / STATE_FOLDER).is_dir():
        # It was interrupted before ZooKeeper ever ran.
        assert shell.type("job", "list", "-o", "json").code == 3
        return
    server = shell.start("zookeeper")  # for both commands: each would start its own
    wait_until(lambda: running_server(shell.state_dir / "zookeeper"), SPARK_TIMEOUT_S, "the server runs")
    assert [job for job in shell.jobs() if job["status"] not in FINAL_STATUSES] == []
    assert {name: jobs for name, jobs in shell.queues().items() if name != "finish" and jobs} == {}
    server.terminate()
    server.wait()
