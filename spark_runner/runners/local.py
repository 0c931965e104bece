"""Drivers on this host, each under a shim that outlives the worker."""

import json
import os
import shutil
import socket
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar

from spark_runner import shim
from spark_runner.errors import KillError, SparkRunnerError, SubmissionError
from spark_runner.process import current_boot_id, is_alive, run_processes
from spark_runner.runners.base import LogFile, Place, RunState, Submission, SubmitRequest
from spark_runner.runners.children import Children
from spark_runner.runners.local_files import (
    LOG_STREAMS,
    RunDirectory,
    run_directories,
    run_directory,
    run_path,
)
from spark_runner.runners.local_kill import kill_run
from spark_runner.runners.local_launch import (
    LOG4J2_PROPERTIES,
    driver_command,
    driver_environment,
    spark_properties,
    spark_submit_command,
)
from spark_runner.runners.properties import render_properties
from spark_runner.state_id import state_id

_UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # what a damaged file of a run directory raises

# The live processes per (run, incarnation); a function, because a look at all processes has its price.
_Look = Callable[[], Mapping[tuple[str, str], Sequence[int]]]


class LocalRunner:
    """Runs drivers as processes of this host; its state is the directory, so any worker here can go on.

    `driver_main` is the file that spark-submit runs. With `owned=True` the drivers end when this process
    does, even by KILL; a forked child that keeps its open files would keep them alive. `spark_submit`
    replaces the program that is started, with its leading arguments.
    """

    backend: ClassVar[str] = "local"

    def __init__(
        self,
        state_dir: Path,
        *,
        driver_main: Path,
        owned: bool = False,
        spark_submit: Sequence[str] | None = None,
    ) -> None:
        self._state_dir = state_dir.absolute()
        self._driver_main = driver_main.absolute()
        self._spark_submit = spark_submit
        self._children = Children()
        self._owner_pipe = os.pipe() if owned else None  # close-on-exec, both ends

    def close(self) -> None:
        """Let go; with `owned=True` this ends the drivers."""
        if self._owner_pipe:
            for end in self._owner_pipe:
                os.close(end)
            self._owner_pipe = None

    @cached_property
    def _store(self) -> str:
        return state_id(self._state_dir)

    def place(self) -> Place:
        """This host, in its present boot; raises SubmissionError without a usable state directory."""
        return Place(self.backend, socket.gethostname(), current_boot_id(), self._store)

    def reaches(self, place: Place) -> bool:
        """Whether that is our directory on this host; of another boot we know that nothing runs any more."""
        return self.place().is_at(place)

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver under a shim of its own; raises SubmissionError."""
        self._children.reap()
        directory = run_directory(self._state_dir, request.run, request.incarnation)
        properties = spark_properties(request, directory)
        conf_dir = self._state_dir / "spark-conf"
        environment = driver_environment(request, directory, conf_dir)
        spark_submit = self._spark_submit or spark_submit_command(environment)
        directory.create()
        try:
            conf_dir.mkdir(mode=0o700, exist_ok=True)
            directory.scratch.mkdir(mode=0o700)
            directory.write("log4j2.properties", LOG4J2_PROPERTIES)
            command = driver_command(
                spark_submit,
                request,
                properties=directory.write("spark.properties", render_properties(properties)),
                driver_main=self._driver_main,
                plan=directory.write("plan.json", json.dumps(request.plan)),
            )
            self._start_shim(directory, command, environment)
        except (OSError, TypeError, ValueError, SubmissionError) as error:
            shutil.rmtree(
                directory.path, ignore_errors=True
            )  # nothing was started, so nothing is to be found
            raise SubmissionError(f"driver of run {request.run} not started: {error}") from error
        return Submission(request.run, request.incarnation, RunState.RUNNING)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` in the state directory, oldest first."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs; at most one look at all processes, and none while all shims are well."""
        self._children.reap()
        look = cache(_look)
        return {
            run: [_submission(found, look) for found in run_directories(self._state_dir, run)] for run in runs
        }

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, verified; raises KillError. An unknown run is no error."""
        directories = run_directories(self._state_dir, run)
        try:
            kill_run(run, directories, grace_seconds)
        except _UNREADABLE as error:
            raise KillError(f"run {run} cannot be ended, its directory is unreadable: {error!r}") from error
        finally:
            self._children.reap()
        for directory in directories:
            directory.drop_scratch()

    def logs(self, run: str) -> list[LogFile]:
        """The logs of every submission of `run` that exist by now, oldest first."""
        return [
            LogFile(found.incarnation, stream, path)
            for found in run_directories(self._state_dir, run)
            for stream in LOG_STREAMS
            if (path := found.path / f"{stream}.log").exists()
        ]

    def cleanup(self, run: str) -> None:
        """Remove the directories of `run`; raises SparkRunnerError while a driver of it may be running."""
        for submission in self.find(run):
            if submission.state in (RunState.RUNNING, RunState.UNKNOWN):
                raise SparkRunnerError(
                    f"run {run} is {submission.state}: kill it before its files are removed"
                )
        try:
            shutil.rmtree(run_path(self._state_dir, run))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise SparkRunnerError(f"files of run {run} are still there: {error}") from error

    def _start_shim(
        self, directory: RunDirectory, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        arguments = [str(directory.path)]
        pass_fds: tuple[int, ...] = ()
        if self._owner_pipe:
            pass_fds = self._owner_pipe[:1]
            arguments += ["--owner-fd", str(pass_fds[0])]
        self._children.start(
            [sys.executable, "-I", "-S", str(Path(shim.__file__).absolute()), *arguments, "--", *command],
            cwd=directory.path,
            environment=environment,
            stderr=directory.write("shim.log", ""),
            pass_fds=pass_fds,
        )


def _submission(directory: RunDirectory, look: _Look) -> Submission:
    state, exit_code, detail = RunState.UNKNOWN, None, ""
    try:
        state, exit_code = _state(directory, look)
        if state is RunState.GONE:
            detail = directory.trouble()
    except _UNREADABLE as error:
        detail = f"{directory.path} cannot be read: {error!r}"
    return Submission(
        directory.run, directory.incarnation, state, exit_code, detail=detail, outcome=directory.outcome()
    )


def _state(directory: RunDirectory, look: _Look) -> tuple[RunState, int | None]:
    """What the files say; the processes are looked at only when the files do not settle it."""
    if (code := directory.exit_code()) is not None:
        return RunState.EXITED, code
    record = directory.shim()
    if record is None:
        if directory.is_young() and not directory.is_kill_requested():
            return RunState.RUNNING, None  # or just about to
    elif is_alive(record.shim):
        return RunState.RUNNING, None
    elif record.shim.boot != current_boot_id():
        return RunState.GONE, None
    processes = look().get((directory.run, directory.incarnation))
    # Once more, and last: the shim may have written the file and ended since our first look.
    if (code := directory.exit_code()) is not None:
        return RunState.EXITED, code
    return RunState.RUNNING if processes else RunState.GONE, None


def _look() -> Mapping[tuple[str, str], Sequence[int]]:
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for process in run_processes():
        found[process.run, process.incarnation].append(process.pid)
    return found
