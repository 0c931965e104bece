"""Worker processes for tests: start, stop, drain, kill."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.config.settings import Settings
from orchestrator.model.limits import Limits
from tests.chaos.damage import Credentials, end_session
from tests.crash_points import Point
from tests.crash_worker import WorkerConfig
from tests.suspension import Suspension
from tests.waiting import wait_until

_DEATH_S = 120
"""A worker starts in 1 s, a driver of real Spark in 10 s; longer beside other tests on two cores."""


class WorkerProcess:
    """One worker, possibly restarted; its output is in `<name>.log`."""

    def __init__(
        self, name: str, folder: Path, config: Mapping[str, Any], hosts: str, *, wrapper: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._wrapper = list(wrapper)  # prefix of its command line
        self.log = folder / f"{name}.log"
        self._session_file = folder / f"{name}.session"
        suspension_file = folder / f"{name}.suspension"
        self._suspension = Suspension(suspension_file)
        self._config = WorkerConfig(
            **config, session_file=str(self._session_file), suspension_file=str(suspension_file)
        )
        self._hosts = hosts
        self._process: subprocess.Popen[bytes] | None = None
        self._suspended_at = 0.0

    def start(self) -> None:
        self._session_file.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._wrapper, sys.executable, "-m", "tests.crash_worker", self._config.to_json()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, f"{self.name} was never started"
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_started(self) -> None:
        """Wait until it has a session."""
        wait_until(
            lambda: self._session_file.exists() or not self.is_running, _DEATH_S, f"{self.name} starts"
        )
        assert self.is_running, self.log.read_text("utf-8")

    @property
    def has_session(self) -> bool:
        """Whether it has a session."""
        return self._session_file.exists()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def suspend(self) -> None:
        """Stop it until `resume`, as if its machine were suspended."""
        self._suspended_at = time.monotonic()
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it; only CLOCK_BOOTTIME shows the suspension."""
        self._suspension.add(time.monotonic() - self._suspended_at)
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """`kill -9`; its session stays until its timeout."""
        if self.is_running:
            self.process.kill()
        self.process.wait()

    def wait_killed(self) -> None:
        """Wait until it has died at its point."""
        code = self.process.wait(_DEATH_S)
        assert code == -signal.SIGKILL, self.log.read_text("utf-8")

    def drain(self, timeout: float) -> float:
        """Send TERM; returns the seconds until its end."""
        began = time.monotonic()
        self.process.terminate()
        code = self.process.wait(timeout)
        assert code == 0, self.log.read_text("utf-8")
        return time.monotonic() - began

    def end_session(self) -> None:
        """End the session of a killed worker at once, as its timeout would."""
        session = json.loads(self._session_file.read_text("utf-8"))
        end_session(self._hosts, Credentials(session["session"], bytes.fromhex(session["password"])))


def worker_config(
    settings: Settings,
    runner: str,
    *,
    slots: int = 2,
    die_at: Point | None = None,
    without: str = "",
    target: Mapping[str, Any] | None = None,
    **limits: object,
) -> dict[str, Any]:
    """The configuration of a `WorkerProcess`; `limits` are those of the configuration."""
    given = {"retention": 3600, "memory_pressure_limit": 0.0, "memory_guard": False, **limits}
    return {
        "settings": {**settings.model_dump(mode="json"), "slots": slots},
        "runner": runner,
        "limits": {**Limits().model_dump(mode="json"), **given},
        "die_at": None if die_at is None else {"step": die_at.step, "after": die_at.after},
        "without": without,
        "target": dict(target or {}),
    }


@contextmanager
def worker_processes(*processes: WorkerProcess) -> Iterator[None]:
    """Start these workers; kill them at the end."""
    try:
        for process in processes:
            process.start()
        yield
    finally:
        for process in processes:
            if process.is_running:
                os.kill(process.process.pid, signal.SIGKILL)
            process.process.wait()
