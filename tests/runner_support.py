"""Support for tests of the local runner: drivers that are small Python programs, and waits for them."""

import contextlib
import json
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import Runner, RunState, SparkTarget, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.waiting import wait_until

# Replaces spark-submit: runs the last two arguments, driver and plan, in plain Python.
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
    return LocalRunner(SparkSubmits(tmp_path / "state", spark_submit=STAND_IN), driver_main=driver_main)


def request(run: str, code: str = "", **more: Any) -> SubmitRequest:
    return SubmitRequest(
        run, str(uuid.uuid4()), "a name", {"code": code}, target=SparkTarget("local[1]"), **more
    )


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

    wait_until(up, 20, "output of the driver")
    return directory(runner, submitted)


def record(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((path / "shim.json").read_bytes())
    return read


def lose_shim(path: Path) -> None:
    """Kill the shim of a driver that survives it, because its PDEATHSIG was cleared."""
    os.kill(record(path)["pid"], signal.SIGKILL)


SURVIVES_SHIM = f"import ctypes; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); {SLEEPS}"
