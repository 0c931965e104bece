import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_runner.protocol.process import (
    RunProcess,
    current_boot_id,
    identify,
    is_alive,
    processes_of,
    run_processes,
)
from tests.waiting import wait_until


@pytest.fixture
def run() -> str:
    return f"{uuid.uuid4()}-1"


@pytest.fixture
def sleeper(run: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose name tries to break the parser of /proc/<pid>/stat."""
    code = "import time; open('/proc/self/comm', 'w').write('a) Z 1 (b'); print(flush=True); time.sleep(60)"
    environment = os.environ | {"ORCHESTRATOR_RUN": run, "ORCHESTRATOR_INCARNATION": "first"}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def test_the_boot_id_is_a_uuid_and_stays() -> None:
    assert str(uuid.UUID(current_boot_id())) == current_boot_id()


def test_a_live_process_is_identified_the_same_twice(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identify(sleeper.pid)
    assert identity
    assert identity == identify(sleeper.pid)
    assert is_alive(identity)


def test_two_processes_differ_even_when_the_number_is_the_same() -> None:
    mine = identify(os.getpid())
    assert mine
    assert not is_alive(replace(mine, start=mine.start - 1))


def test_a_process_of_another_boot_is_gone() -> None:
    mine = identify(os.getpid())
    assert mine
    assert not is_alive(replace(mine, boot=str(uuid.uuid4())))


def test_an_unused_process_id_is_no_process() -> None:
    assert identify(2**22 + 1) is None


def test_a_zombie_is_gone(sleeper: subprocess.Popen[bytes], run: str) -> None:
    identity = identify(sleeper.pid)
    assert identity
    sleeper.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # ended, and not yet reaped
    assert not is_alive(identity)
    assert identify(sleeper.pid) is None
    assert processes_of(run) == []


def test_processes_are_found_by_the_run_in_their_environment(
    sleeper: subprocess.Popen[bytes], run: str
) -> None:
    assert processes_of(run) == [sleeper.pid]
    assert RunProcess(sleeper.pid, run, "first", os.geteuid()) in run_processes()


def test_the_run_must_be_the_whole_value(sleeper: subprocess.Popen[bytes], run: str) -> None:
    assert sleeper.poll() is None
    assert processes_of(run[:-1]) == []


def test_a_child_inherits_the_run(run: str) -> None:
    environment = os.environ | {"ORCHESTRATOR_RUN": run}
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"], env=environment, start_new_session=True) as shell:
        try:
            wait_until(lambda: len(processes_of(run)) == 2, 10, "the shell and its child")
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(run), 10, "the end of both")


def test_a_process_in_the_middle_of_an_exec_is_not_overlooked(run: str, tmp_path: Path) -> None:
    script = tmp_path / "again.sh"
    script.write_text('exec sh "$0"\n', "utf-8")  # does nothing but exec
    environment = os.environ | {"ORCHESTRATOR_RUN": run}
    with subprocess.Popen(["sh", str(script)], env=environment) as process:
        try:
            assert [
                found for found in (processes_of(run) for _ in range(300)) if found != [process.pid]
            ] == []
        finally:
            process.kill()
