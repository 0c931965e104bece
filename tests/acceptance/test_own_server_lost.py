"""The Java of a command's own ZooKeeper ends: the command says so and ends, and nothing is lost."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from queues.embedded.server import SERVER_CLASS
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

ENDS_WITHIN_S = 60
SHORTER_THAN_A_READ_S = 20  # which waits for 30 s


def java_of(command: Running) -> psutil.Process:
    below = psutil.Process(command.pid).children(recursive=True)
    (java,) = [each for each in below if each.name() == "java" and SERVER_CLASS in each.cmdline()]
    return java


def kill_java(command: Running) -> None:
    java_of(command).kill()


@contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def test_up_ends_with_its_zookeeper_and_the_next_one_goes_on(
    shell: Shell, tmp_path: Path, process_mark: str
) -> None:
    started, go_on = tmp_path / "starts", tmp_path / "go-on"
    shell.use_stand_ins()
    up = shell.start("up", "--slots", "1")
    up.wait_for_words("Ctrl-C ends them")
    assert up.stderr.startswith(f"ZooKeeper and a worker start, with their data in {shell.state_dir}\n")
    shell.python_job("waits", program_that_waits(started, go_on))
    assert shell.type("job", "submit", "waits.yaml", "--id", "waits").code == 0
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the program runs")
    kill_java(up)
    ended = up.wait(ENDS_WITHIN_S)
    assert ended.code == 1
    assert re.search(
        r"^error: ZooKeeper at \S+ has ended by itself; .* its log is \S+$", ended.stderr, re.MULTILINE
    )
    assert_nothing_is_left(process_mark)
    assert shell.job("waits")["id"] == "waits"


def test_run_ends_with_its_zookeeper(shell: Shell, tmp_path: Path, process_mark: str) -> None:
    started, go_on = tmp_path / "starts", tmp_path / "go-on"
    shell.use_stand_ins()
    shell.python_job("waits", program_that_waits(started, go_on))
    run = shell.start("run", "waits.yaml")
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "the program runs")
    kill_java(run)
    ended = run.wait(ENDS_WITHIN_S)
    assert (ended.code, ended.stdout) == (1, "")
    assert "error: ZooKeeper at " in ended.stderr
    assert_no_traceback(ended.stderr)
    assert_nothing_is_left(process_mark)


def test_zookeeper_says_what_it_does_and_ends_with_its_java(shell: Shell, process_mark: str) -> None:
    server = shell.start("zookeeper")
    server.wait_for_words("Ctrl-C ends it")
    assert server.stderr.startswith(f"ZooKeeper starts, with its data in {shell.state_dir}/zookeeper\n")
    kill_java(server)
    ended = server.wait(ENDS_WITHIN_S)
    assert (ended.code, ended.stdout) == (1, "")
    assert "error: ZooKeeper at " in ended.stderr
    assert_nothing_is_left(process_mark)


def test_the_wait_for_a_drain_ends_at_once_while_zookeeper_does_not_answer(
    shell: Shell, process_mark: str
) -> None:
    shell.use_stand_ins()
    server = shell.start("zookeeper")
    server.wait_for_words("Ctrl-C ends it")
    worker = shell.start("worker", "--slots", "1")
    worker.wait_for_words(" slot")
    found = re.search(r"worker (\S+) serves", worker.stderr)
    assert found is not None
    shell.python_job("sleeps", "import time; time.sleep(600)")
    assert shell.type("job", "submit", "sleeps.yaml", "--id", "sleeps").code == 0
    wait_until(lambda: shell.job("sleeps")["queue"] == "running", SPARK_TIMEOUT_S, "it runs")
    drain = shell.start("worker", "drain", found[1])
    drain.wait_for_words("1 job left")
    with stopped(java_of(server)):
        worker.wait_for_words("the connection to ZooKeeper is suspended")
        drain.press_ctrl_c()
        ended = drain.wait(SHORTER_THAN_A_READ_S)
    assert ended.code == 130
    assert "the worker drains on" in ended.stderr
    shell.type("job", "kill", "sleeps")
    worker.wait(ENDS_WITHIN_S)
    server.press_ctrl_c()
    server.wait(ENDS_WITHIN_S)
    assert_nothing_is_left(process_mark)
