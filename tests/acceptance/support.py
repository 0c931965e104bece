"""Support for acceptance tests: a shell that runs the real command line."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from queues.embedded.java import find_jars
from tests.acceptance.fork_server import ForkServer, open_fork_server
from tests.jobs_support import STAND_IN, marked_processes
from tests.waiting import wait_until

COMMAND = (sys.executable, "-m", "orchestrator")
STARTERS = {"run", "up", "worker", "zookeeper", "zkcli"}
FINAL_STATUSES = {"SUCCESS", "ERROR_FAIL", "KILL", "CANCEL"}
QUEUES = ("accept", "running", "success", "fail", "kill", "finish", "dead")

COMMAND_TIMEOUT_S = 120
"""A `run` takes 10 s alone, and half a minute beside other tests on two cores."""

SPARK_TIMEOUT_S = 240
"""From the submission to the first line of the program, with several drivers on two cores."""

NOTHING_LEFT_S = 3
"""The shim of a driver ends shortly after the command that has seen the end of the driver."""

DURATION = r"(?:[\d.]+ s|\d+ min \d\d s)"
"""How the command line prints a duration; on a slow machine any of them may exceed a minute."""

SPARK = {"master": "local[1]", "driver": {"memory": "512m"}}
"""The smallest Spark."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a command: its exit code, as a shell reports it, and its output."""

    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The only document on stdout."""
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


class Running:
    """A command in its own session, as a terminal starts it; its output goes to files."""

    def __init__(self, arguments: Sequence[str], directory: Path, environment: dict[str, str]) -> None:
        directory.mkdir(parents=True)
        self._stdout, self._stderr = directory / "stdout", directory / "stderr"
        with self._stdout.open("wb") as stdout, self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=directory.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout(self) -> str:
        return self._stdout.read_text("utf-8")

    @property
    def stderr(self) -> str:
        return self._stderr.read_text("utf-8")

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def press_ctrl_c(self) -> None:
        """As a terminal: SIGINT to every process of the foreground group."""
        if not self.has_ended:
            os.killpg(self.pid, signal.SIGINT)

    def terminate(self) -> None:
        """As a service manager: TERM to the process alone."""
        self._process.terminate()

    def kill(self) -> None:
        """`kill -9`: the command closes nothing."""
        self._process.kill()
        self._process.wait()

    def wait(self, timeout: float = COMMAND_TIMEOUT_S) -> Ended:
        code = self._process.wait(timeout)
        # Ended by a signal: Python handles SIGINT neither in its first moments nor in its last ones.
        code = code if code >= 0 else 128 - code
        return Ended(code, self.stdout, self.stderr)

    def wait_for_words(self, words: str, timeout: float = SPARK_TIMEOUT_S) -> None:
        """Wait until stderr has this text; fails when the command ends without it."""
        wait_until(
            lambda: words in self.stderr or self.has_ended,
            timeout,
            f"{words!r} on stderr of process {self.pid}",
        )
        assert words in self.stderr, self.stderr

    def close(self) -> None:
        if not self.has_ended:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()


# The archive that `tests.class_archive` has made for all drivers.
_KEPT = {"ORCHESTRATOR_CACHE_DIR", "ORCHESTRATOR_CLASS_ARCHIVES"}


class Shell:
    """A working directory, its own state directory, and an environment for commands."""

    def __init__(self, directory: Path, fork_server: ForkServer) -> None:
        self.directory = directory
        self._fork_server = fork_server
        self.state_dir = directory / "state"
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name in _KEPT or not name.startswith(("ORCHESTRATOR_", "ZOOKEEPER_HOSTS"))
        }
        self.environment = inherited | {
            "ORCHESTRATOR_STATE_DIR": str(self.state_dir),
            "ORCHESTRATOR_CONFIG": os.devnull,  # no configuration of this machine
            "ORCHESTRATOR_MEMORY_PRESSURE_LIMIT": "0",  # the pressure of the machine comes from all tests
            "ORCHESTRATOR_MEMORY_GUARD": "false",
            "NO_COLOR": "1",
        }
        self._running: list[Running] = []

    def start(self, *arguments: str, **environment: str) -> Running:
        """Start a command; it ends at the latest with the test."""
        output = self.directory / f"command-{len(self._running)}"
        running = Running(arguments, output, self.environment | environment)
        self._running.append(running)
        return running

    def type(self, *arguments: str, timeout: float = COMMAND_TIMEOUT_S, **environment: str) -> Ended:
        """Run a command to its end; a command that starts servers or drivers gets a new interpreter."""
        if arguments[0] in STARTERS:
            return self.type_anew(*arguments, timeout=timeout, **environment)
        return self.type_quickly(*arguments, timeout=timeout, **environment)

    def type_quickly(self, *arguments: str, timeout: float = COMMAND_TIMEOUT_S, **environment: str) -> Ended:
        """Run a command in a fork of an interpreter that has loaded the program."""
        code, stdout, stderr = self._fork_server.type(
            arguments,
            directory=self.directory,
            environment=self.environment | environment,
            timeout=timeout,
        )
        return Ended(code, stdout, stderr)

    def type_anew(self, *arguments: str, timeout: float = COMMAND_TIMEOUT_S, **environment: str) -> Ended:
        """Run a command in a new interpreter, as a shell does."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.directory,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def jobs(self) -> list[dict[str, Any]]:
        """`job list -o json`."""
        listed: list[dict[str, Any]] = self.type("job", "list", "-o", "json").json()
        return listed

    def job(self, job_id: str) -> dict[str, Any]:
        """`job show -o json`."""
        shown: dict[str, Any] = self.type("job", "show", job_id, "-o", "json").json()
        return shown

    def queues(self) -> dict[str, int]:
        """`queue list -o json`: the number of jobs in each queue."""
        rows = self.type("queue", "list", "-o", "json").json()
        return {row["queue"]: row["jobs"] for row in rows}

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text, "utf-8")
        return path

    def python_job(self, name: str, program: str, conf: Mapping[str, str] | None = None) -> Path:
        """A definition of a Python program: one attempt, the smallest Spark, and `conf`."""
        self.write(f"{name}.py", program)
        definition = {
            "name": name,
            "python": f"{name}.py",
            "spark": {**SPARK, "conf": dict(conf or {})},
            "retry": {"attempts": 1},
        }
        return self.write(f"{name}.yaml", yaml.safe_dump(definition))

    def use_stand_ins(self) -> None:
        """From now on drivers are stand-ins, with a tenth of the work of Spark."""
        home = self.directory / "spark-home"
        (home / "bin").mkdir(parents=True)
        (home / "jars").symlink_to(find_jars())  # the jars of the embedded ZooKeeper
        program = home / "bin" / "spark-submit"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(STAND_IN)} "$@"\n', "utf-8")
        program.chmod(0o755)
        self.environment |= {"SPARK_HOME": str(home), "ORCHESTRATOR_CLASS_ARCHIVES": "false"}

    def submissions(self) -> list[Path]:
        """The directories of all submitted drivers."""
        return sorted((self.state_dir / "runs").glob("*/*"))

    def close(self) -> None:
        for running in self._running:
            running.close()


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """The server that starts the short commands of all tests."""
    with open_fork_server() as opened:
        yield opened


@pytest.fixture
def shell(tmp_path: Path, process_mark: str, fork_server: ForkServer) -> Iterator[Shell]:
    """A shell without a configured ZooKeeper; after the test no process of it may be left."""
    assert process_mark
    made = Shell(tmp_path, fork_server)
    yield made
    made.close()


@pytest.fixture
def stand_in_shell(shared_shell: Shell) -> Shell:
    """The shared shell, with stand-ins as drivers."""
    shared_shell.use_stand_ins()
    return shared_shell


@pytest.fixture
def shared_shell(zookeeper_hosts: str, zookeeper_root: str, shell: Shell) -> Shell:
    """A shell on the shared server, below its own root."""
    shell.environment |= {"ZOOKEEPER_HOSTS": zookeeper_hosts, "ORCHESTRATOR_ROOT": zookeeper_root}
    return shell


def program_that_waits(started: Path, go_on: Path) -> str:
    """A program that records its start, waits for a file, and prints a last line."""
    return (
        "import pathlib, time\n"
        f"with open({str(started)!r}, 'a') as file:\n"
        "    file.write('started\\n')\n"
        f"while not pathlib.Path({str(go_on)!r}).exists():\n"
        "    time.sleep(0.1)\n"
        "print('went on')\n"
    )


def has_started(started: Path) -> bool:
    """Whether the program of `program_that_waits` runs."""
    return started.exists() and started.read_text("utf-8").endswith("\n")


def assert_nothing_is_left(mark: str) -> None:
    """No process that the test started is alive."""
    wait_until(
        lambda: not marked_processes(mark),
        NOTHING_LEFT_S,
        "no process of the command is left: "
        + str([(process.pid, process.name()) for process in marked_processes(mark)]),
    )


def assert_no_traceback(words: str) -> None:
    """An error has no traceback."""
    assert "Traceback" not in words, words
    assert "KeyboardInterrupt" not in words, words
