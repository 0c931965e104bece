"""The shim's measures of all processes below it, and its detection of those that the kernel ended."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_runner.protocol.control_groups import own_groups
from spark_runner.runners.base import RunState
from spark_runner.runners.local import LocalRunner
from tests.integration.test_shim import Shim, a_shim
from tests.runner_support import driver_main, request, run, runner, wait_for
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

__all__ = ["a_shim", "driver_main", "run", "runner"]

MB = 1 << 20
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
EATS = "data = []\nwhile True: data.append(bytearray(b'x' * (8 << 20)))"


def test_the_memory_of_all_processes_together_and_their_time_are_in_the_exit_file(a_shim: Shim) -> None:
    child = "x = bytearray(b'x' * (60 << 20)); import time; time.sleep(2)"
    a_shim.python(
        "import subprocess, sys, time\n"
        f"started = [subprocess.Popen([sys.executable, '-c', {child!r}]) for _ in range(3)]\n"
        "[process.wait() for process in started]\n"
        "end = time.process_time() + 0.5\n"
        "while time.process_time() < end: pass"
    )
    usage = a_shim.wait()["usage"]
    assert 180 * MB < usage["rss_peak_bytes"] < 500 * MB
    assert 0.5 < usage["cpu_seconds"] < 10
    assert usage["oom_kill"] is False


def test_one_process_that_was_large_between_two_looks_counts(a_shim: Shim) -> None:
    a_shim.python("x = bytearray(b'x' * (200 << 20))")
    assert a_shim.wait()["usage"]["rss_peak_bytes"] > 200 * MB


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory control group of 150 MiB, of the version of this machine."""
    path = (V1 if V1.is_dir() else V2) / f"orchestrator-test-{uuid.uuid4().hex}"
    limits = {"memory.limit_in_bytes": V1.is_dir(), "memory.max": not V1.is_dir()}
    try:
        path.mkdir()
        for name, is_there in limits.items():
            if is_there:
                (path / name).write_text(str(150 * MB), "ascii")
    except OSError as error:
        with contextlib.suppress(OSError):
            path.rmdir()
        unavailable(f"no control group with a memory limit can be made here: {error}")
    for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):  # else it may swap
        with contextlib.suppress(OSError):
            (path / swap).write_text(str(150 * MB if "memsw" in swap else 0), "ascii")
    yield path
    wait_until(lambda: not (path / "cgroup.procs").read_text("ascii"), 20, "the group is empty")
    path.rmdir()


@contextmanager
def inside(group: Path) -> Iterator[None]:
    """This process is in the group meanwhile, and its children stay there."""
    before = own_groups("memory")[0].folder
    (group / "cgroup.procs").write_text(str(os.getpid()), "ascii")
    try:
        yield
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()), "ascii")


def test_a_driver_that_the_kernel_ended_for_lack_of_memory_is_reported_so(
    runner: LocalRunner, run: str, small_group: Path
) -> None:
    with inside(small_group):
        runner.submit(request(run, EATS))
    ended = wait_for(runner, run, RunState.EXITED)
    assert ended.exit_code == 137
    assert ended.failure is not None
    assert (ended.failure.error_class, ended.failure.type) == ("memory", "OutOfMemoryKill")
    assert ended.failure.short_of == "driver.container"
    assert "is 150 MiB" in ended.failure.message
    assert ended.usage["rss_peak_bytes"] > 80 * MB
    assert ended.usage["cgroup_limit_bytes"] == 150 * MB


def test_a_killed_driver_is_no_lack_of_memory(runner: LocalRunner, run: str) -> None:
    runner.submit(request(run, "import os; os.kill(os.getpid(), 9)"))
    ended = wait_for(runner, run, RunState.EXITED)
    assert (ended.exit_code, ended.failure) == (137, None)
    assert ended.usage["oom_kill"] is False
