import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.log_limit import MAX_LOG_BYTES
from spark_runner.protocol.process import KILL_REQUEST, ProcessId, current_boot_id, is_alive, processes_of
from spark_runner.shim import shim
from tests.waiting import wait_until

IGNORES_TERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); "
SLEEPS = "import time; print('up', flush=True); time.sleep(60)"


class Shim:
    """A real shim over a real driver, in a run directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.run = f"{uuid.uuid4()}-1"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *argv: str, options: tuple[str, ...] = (), pass_fds: tuple[int, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", shim.__file__, str(self.directory), *options, "--", *argv],
            env=os.environ | {"ORCHESTRATOR_RUN": self.run},
            start_new_session=True,
            pass_fds=pass_fds,
        )

    def python(self, code: str, **options: Any) -> None:
        self.start(sys.executable, "-c", code, **options)

    def wait(self) -> dict[str, Any]:
        """Wait for its end; no process may be left when the exit file appears."""
        assert self.process
        wait_until((self.directory / "exit.json").exists, 20, "exit.json")
        assert set(processes_of(self.run)) <= {self.process.pid}
        assert self.process.wait(10) == 0
        assert self.text("shim.log") == ""
        ended: dict[str, Any] = json.loads(self.text("exit.json"))
        return ended

    def text(self, name: str) -> str:
        path = self.directory / name
        return path.read_text("utf-8") if path.exists() else ""

    def wait_for_output(self, count: int = 1) -> list[str]:
        wait_until(lambda: self.text("stdout.log").count("\n") >= count, 20, "words of the driver")
        return self.text("stdout.log").split()


@pytest.fixture
def a_shim(tmp_path: Path) -> Iterator[Shim]:
    it = Shim(tmp_path)
    yield it
    for pid in processes_of(it.run):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if it.process:
        it.process.wait(10)
    wait_until(lambda: not processes_of(it.run), 10, "the end of all processes of the test")


@pytest.mark.parametrize(
    ("code", "expected", "by"),
    [
        ("", 0, None),
        ("raise SystemExit(3)", 3, None),
        ("import os; os.kill(os.getpid(), 9)", 137, 9),
        ("import os; os.kill(os.getpid(), 15)", 143, 15),
    ],
)
def test_the_exit_code_is_kept_as_a_shell_would_show_it(
    a_shim: Shim, code: str, expected: int, by: int | None
) -> None:
    a_shim.python(code)
    ended = a_shim.wait()
    assert (ended["exit_code"], ended["signal"]) == (expected, by)
    assert ended["ended"].endswith("Z")


def test_the_record_names_shim_and_driver_and_only_its_owner_can_read_it(a_shim: Shim) -> None:
    a_shim.python(f"import os; print(os.getpid(), os.getpgrp(), os.getppid(), flush=True); {SLEEPS}")
    driver, group, parent = map(int, a_shim.wait_for_output(2)[:3])
    record = json.loads(a_shim.text("shim.json"))
    assert a_shim.process
    assert record["pid"] == parent == a_shim.process.pid
    assert record["child"]["pid"] == driver == group
    assert record["boot"] == current_boot_id()
    assert is_alive(ProcessId(record["pid"], record["start"], record["boot"]))
    assert is_alive(ProcessId(driver, record["child"]["start"], record["boot"]))
    assert (a_shim.directory / "shim.json").stat().st_mode & 0o777 == 0o600


def test_output_is_appended_and_input_is_empty(a_shim: Shim) -> None:
    (a_shim.directory / "stdout.log").write_text("before\n", "utf-8")
    a_shim.python("import sys; print(repr(sys.stdin.read())); print('oh', file=sys.stderr)")
    assert a_shim.wait()["exit_code"] == 0
    assert a_shim.text("stdout.log") == "before\n''\n"
    assert a_shim.text("stderr.log") == "oh\n"


def test_a_command_that_is_not_there_is_127_with_the_reason(a_shim: Shim) -> None:
    a_shim.start("/no/such/spark-submit")
    assert a_shim.wait()["exit_code"] == 127
    assert "/no/such/spark-submit" in a_shim.text("stderr.log")
    assert "No such file" in a_shim.text("stderr.log")


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_process_that_left_the_drivers_session_is_ended_before_the_exit_file(
    a_shim: Shim, stubborn: bool
) -> None:
    code = IGNORES_TERM + "time.sleep(60)" if stubborn else SLEEPS
    # Two generations that both exit: the grandchild's parent is an orphan itself.
    inner = f"import os; os.fork() or os.setsid(); {code}"
    a_shim.python(
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {inner!r}], "
        "start_new_session=True, stdout=subprocess.PIPE); "
        "p.stdout.readline(); p.stdout.readline(); sys.exit(3)"
    )
    assert a_shim.wait()["exit_code"] == 3


def test_term_is_passed_on_and_the_driver_may_end_in_its_own_way(a_shim: Shim) -> None:
    a_shim.python(
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); "
        "print('up', flush=True); time.sleep(60)"
    )
    a_shim.wait_for_output()
    assert a_shim.process
    a_shim.process.terminate()
    assert a_shim.wait()["exit_code"] == 5


def test_a_driver_that_ignores_term_is_killed_after_the_grace(a_shim: Shim) -> None:
    a_shim.python(IGNORES_TERM + "time.sleep(60)", options=("--grace", "0.5"))
    a_shim.wait_for_output()
    assert a_shim.process
    a_shim.process.terminate()
    assert a_shim.wait()["signal"] == signal.SIGKILL


def test_a_kill_request_brings_its_own_grace_and_a_later_one_may_shorten_it(a_shim: Shim) -> None:
    a_shim.python(IGNORES_TERM + "time.sleep(60)", options=("--grace", "0"))
    a_shim.wait_for_output()
    assert a_shim.process
    request = a_shim.directory / KILL_REQUEST
    request.write_text('{"grace_seconds": 600}', "utf-8")
    a_shim.process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        a_shim.process.wait(0.5)
    request.write_text('{"grace_seconds": 0}', "utf-8")
    a_shim.process.terminate()
    assert a_shim.wait()["exit_code"] == 137


def test_a_kill_request_that_was_first_stops_the_start(a_shim: Shim) -> None:
    (a_shim.directory / KILL_REQUEST).write_text('{"grace_seconds": 10}', "utf-8")
    a_shim.python("print('user code ran')")
    assert a_shim.wait()["exit_code"] == 143
    assert a_shim.text("stdout.log") == ""


def test_the_end_of_the_owner_ends_the_driver_even_by_kill(a_shim: Shim) -> None:
    owner_code = (
        "import os, subprocess, sys, time; r, w = os.pipe(); "
        f"subprocess.Popen([sys.executable, '-I', '-S', {shim.__file__!r}, {str(a_shim.directory)!r}, "
        f"'--owner-fd', str(r), '--', sys.executable, '-c', {SLEEPS!r}], pass_fds=[r]); time.sleep(60)"
    )
    environment = os.environ | {"ORCHESTRATOR_RUN": a_shim.run}
    with subprocess.Popen([sys.executable, "-c", owner_code], env=environment) as owner:
        try:
            a_shim.wait_for_output()
        finally:
            owner.kill()
    wait_until((a_shim.directory / "exit.json").exists, 20, "exit.json")
    assert json.loads(a_shim.text("exit.json"))["exit_code"] == 143
    wait_until(lambda: not processes_of(a_shim.run), 10, "the end of the shim")


def test_the_driver_does_not_get_the_owners_pipe(a_shim: Shim) -> None:
    read, write = os.pipe()
    try:
        code = "import os; print(sorted(os.readlink(f'/proc/self/fd/{n}') for n in range(3, 99) "
        code += "if os.path.exists(f'/proc/self/fd/{n}')))"
        a_shim.python(code, options=("--owner-fd", str(read)), pass_fds=(read,))
        assert a_shim.wait()["exit_code"] == 0
        assert a_shim.text("stdout.log") == "[]\n"
    finally:
        os.close(read)
        os.close(write)


def test_the_driver_dies_with_a_shim_that_is_killed(a_shim: Shim) -> None:
    a_shim.python(IGNORES_TERM + "time.sleep(60)")
    a_shim.wait_for_output()
    assert a_shim.process
    a_shim.process.kill()
    wait_until(lambda: not processes_of(a_shim.run), 10, "the end of the driver")
    assert not (a_shim.directory / "exit.json").exists()


def test_signals_that_the_starter_blocked_reach_shim_and_driver(a_shim: Shim) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        a_shim.python(SLEEPS)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    a_shim.wait_for_output()
    assert a_shim.process
    a_shim.process.terminate()
    assert a_shim.wait()["signal"] == signal.SIGTERM


def test_a_shim_that_cannot_write_its_record_says_so_and_runs_no_driver(a_shim: Shim) -> None:
    (a_shim.directory / "shim.json").mkdir()  # a rename over a directory fails
    a_shim.python("print('user code ran')")
    assert a_shim.process
    assert a_shim.process.wait(20) == 1
    assert "IsADirectoryError" in a_shim.text("shim.log")
    assert a_shim.text("stdout.log") == ""
    assert processes_of(a_shim.run) == []


def test_an_exit_file_that_cannot_be_written_at_once_is_tried_again(a_shim: Shim) -> None:
    obstacle = a_shim.directory / "exit.json"
    obstacle.mkdir()
    a_shim.python("raise SystemExit(3)")
    wait_until(lambda: "exit.json" in a_shim.text("shim.log"), 10, "the complaint")
    obstacle.rmdir()
    wait_until(obstacle.is_file, 10, "exit.json")
    assert json.loads(a_shim.text("exit.json"))["exit_code"] == 3


def test_the_output_of_a_driver_is_bounded_on_the_disk_and_its_end_is_kept(a_shim: Shim) -> None:
    a_shim.python(
        """
import os, time
chunk = b"x" * (1 << 20)
for _ in range(3):
    for _ in range(110):
        os.write(1, chunk)
    while os.fstat(1).st_size > 100 << 20:
        time.sleep(0.02)
os.write(1, b"the end")
"""
    )
    assert a_shim.wait()["exit_code"] == 0
    assert a_shim.text("stdout.log").endswith("the end")
    assert (a_shim.directory / "stdout.log").stat().st_size < 20 << 20
    assert (a_shim.directory / "stdout.log.1").stat().st_size == MAX_LOG_BYTES
