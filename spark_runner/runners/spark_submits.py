"""The spark-submit processes of this host, each under a shim that outlives the worker.

With a local master, and in client mode on a cluster, such a process is the driver itself; in cluster mode it
hands the driver over.
"""

import os
import shutil
import socket
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from spark_runner import shim
from spark_runner.errors import KillError, SubmissionError
from spark_runner.process import (
    ProcessId,
    RunProcess,
    current_boot_id,
    current_pid_namespace,
    is_alive,
    run_processes,
)
from spark_runner.runners.base import LogFile, RunState, Submission, SubmissionPlace, SubmitRequest
from spark_runner.runners.children import Children
from spark_runner.runners.kill_ladder import kill_run
from spark_runner.runners.launch import Launch, QuickStart, launch_driver, spark_submit_command
from spark_runner.runners.out_of_memory import memory_failure
from spark_runner.runners.run_as import LINKS, UserAccount, Users, hand_over
from spark_runner.runners.run_directory import (
    WORK,
    RunDirectory,
    log_files,
    remove_run,
    run_directories,
    run_directory,
)
from spark_runner.runners.start_words import tail, trouble, unresolved_packages
from spark_runner.state_id import state_id

_UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # what a damaged file of a run directory raises

# The live processes per (run, incarnation); a function, because a look at all processes has its price.
_Look = Callable[[], Mapping[tuple[str, str], Sequence[RunProcess]]]


class SparkSubmits:
    """Starts, finds, watches and ends them; its state is the directory, so any worker here can go on.

    With `owned=True` they end when this process does, even by KILL; a forked child that keeps its open files
    would keep them alive. `spark_submit` replaces the program that is started, with its leading arguments;
    `quick_start` lets the JVMs of drivers start sooner; `passed_on` are names of our environment that drivers
    get beside those of `environment.for_drivers`; `users` says which drivers run as another user.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        owned: bool = False,
        spark_submit: Sequence[str] | None = None,
        quick_start: QuickStart | None = None,
        passed_on: Sequence[str] = (),
        users: Users | None = None,
    ) -> None:
        self.state_dir = state_dir.absolute()
        self.quick_start = quick_start
        self.passed_on = passed_on
        self.users = users
        self._spark_submit = spark_submit
        self._children = Children()
        self._owner_pipe = os.pipe() if owned else None  # close-on-exec, both ends

    def close(self) -> None:
        """Let go; with `owned=True` this ends them."""
        if self._owner_pipe:
            for end in self._owner_pipe:
                os.close(end)
            self._owner_pipe = None

    @cached_property
    def _store(self) -> str:
        return state_id(self.state_dir)

    def place(self, backend: str, cluster: Mapping[str, str] | None = None) -> SubmissionPlace:
        """This PID namespace of this host in its present boot; raises SubmissionError.

        That is without a usable state directory.
        """
        host, boot = socket.gethostname(), current_boot_id()
        return SubmissionPlace(backend, host, boot, self._store, cluster or {}, current_pid_namespace())

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether that is our directory on this host; of another boot we know that nothing runs any more."""
        return self.place(place.backend).is_at(place)

    @property
    def shared_dir(self) -> Path:
        """Where that is which drivers of each user may read, and none can change."""
        return self.state_dir if self.users is None else self.users.folder

    @property
    def conf_dir(self) -> Path:
        """The empty SPARK_CONF_DIR of drivers."""
        return self.state_dir / "spark-conf" if self.users is None else self.users.conf_dir

    def user_of(self, request: SubmitRequest) -> UserAccount | None:
        """Whom a driver of this host runs as; None for our own user."""
        return None if self.users is None else self.users.of_pool(request.pool)

    def start_driver(self, request: SubmitRequest, driver_main: Path) -> Submission:
        """Start one that is the driver itself, which runs the file `driver_main`; raises SubmissionError."""
        return self.start(
            request,
            lambda directory: launch_driver(
                request,
                directory,
                driver_main=driver_main,
                conf_dir=self.conf_dir,
                quick_start=self.quick_start,
                passed_on=self.passed_on,
            ),
            user=self.user_of(request),
        )

    def start(
        self,
        request: SubmitRequest,
        prepare: Callable[[RunDirectory], Launch],
        *,
        user: UserAccount | None = None,
    ) -> Submission:
        """Start one under a shim of its own, as another `user` where one is given; raises SubmissionError.

        `prepare` writes what it needs into the run directory and says how spark-submit is called; the plan is
        written after it, as `plan.json`.
        """
        self._children.reap()
        directory = run_directory(self.state_dir, request.run, request.incarnation)
        directory.create()
        try:
            if user is not None and self.users is not None:
                work = self.users.work_directory(user, request.run, request.incarnation)
                (directory.path / WORK).symlink_to(work)
                for name, descriptor in LINKS.items():
                    (work / name).symlink_to(f"/proc/self/fd/{descriptor}")
            directory.scratch.mkdir(mode=0o700)
            launch = prepare(directory)
            program = launch.program or self._spark_submit or spark_submit_command(launch.environment)
            directory.write_plan(request)
            if user is not None:
                hand_over(directory.work, user)
            self._start_shim(directory, [*program, *launch.arguments], launch, user)
        except (OSError, TypeError, ValueError, SubmissionError) as error:
            # Nothing was started, so nothing is to be found.
            for path in (directory.work, directory.path):
                shutil.rmtree(path, ignore_errors=True)
            kind = type(error) if isinstance(error, SubmissionError) else SubmissionError
            raise kind(f"driver of run {request.run} not started: {error}") from error
        return Submission(request.run, request.incarnation, RunState.RUNNING)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` in the state directory, oldest first."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs; at most one look at all processes, and none while all shims are well."""
        self._children.reap()
        look = cache(_look)
        return {
            run: [_submission(found, look) for found in run_directories(self.state_dir, run)] for run in runs
        }

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, verified; raises KillError. An unknown run is no error."""
        directories = run_directories(self.state_dir, run)
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
        return [log for found in run_directories(self.state_dir, run) for log in log_files(found)]

    def cleanup(self, run: str) -> None:
        """Remove the directories of `run`; raises SparkRunnerError while a driver of it may be running."""
        remove_run(self.state_dir, run, self.find(run))

    def _start_shim(
        self, directory: RunDirectory, command: Sequence[str], launch: Launch, user: UserAccount | None
    ) -> None:
        arguments = [str(directory.path)]
        environment = launch.environment
        if launch.directory or user is not None:
            arguments += ["--directory", launch.directory or str(directory.work)]
        if user is not None:
            groups = ",".join(map(str, user.groups))
            arguments += ["--user", f"{user.uid}:{user.gid}:{groups}"]
            environment = user.environment(environment)
        pass_fds: tuple[int, ...] = ()
        if self._owner_pipe:
            pass_fds = self._owner_pipe[:1]
            arguments += ["--owner-fd", str(pass_fds[0])]
        self._children.start(
            [sys.executable, "-I", "-S", str(Path(shim.__file__).absolute()), *arguments, "--", *command],
            cwd=directory.work,
            environment=environment,
            stderr=directory.write_own("shim.log", ""),
            pass_fds=pass_fds,
        )


def _submission(directory: RunDirectory, look: _Look) -> Submission:
    state, exit_code, detail = RunState.UNKNOWN, None, ""
    try:
        state, exit_code = _state(directory, look)
        if state is RunState.GONE:
            detail = directory.trouble()
        elif state is RunState.UNKNOWN:
            detail = "it was started in another PID namespace of this host: nobody here sees its processes"
    except _UNREADABLE as error:
        detail = f"{directory.path} cannot be read: {error!r}"
    usage = directory.usage() if state is RunState.EXITED else None
    outcome, failure = directory.outcome(), memory_failure(exit_code, usage)
    if exit_code and outcome is None and failure is None:
        words = tail(directory.path / "stderr.log")
        failure, detail = unresolved_packages(words), trouble(words)
    return Submission(
        directory.run,
        directory.incarnation,
        state,
        exit_code,
        detail=detail,
        outcome=outcome,
        failure=failure,
        usage=usage,
    )


def _state(directory: RunDirectory, look: _Look) -> tuple[RunState, int | None]:
    """What the files say; the processes are looked at only when the files do not settle it."""
    if (code := directory.exit_code()) is not None:
        return RunState.EXITED, code
    record = directory.shim()
    if record is None:
        if directory.is_young() and not directory.is_kill_requested():
            return RunState.RUNNING, None  # or just about to
    elif (state := _state_of(record.shim)) is not None:
        return state, None
    users = directory.users
    named = look().get((directory.run, directory.incarnation), ())
    processes = [process for process in named if process.user in users]
    # Once more, and last: the shim may have written the file and ended since our first look.
    if (code := directory.exit_code()) is not None:
        return RunState.EXITED, code
    return RunState.RUNNING if processes else RunState.GONE, None


def _state_of(shim: ProcessId) -> RunState | None:
    """What follows from its shim alone; None when that is gone, and its driver may have survived it."""
    if shim.is_out_of_sight:
        return RunState.UNKNOWN
    if is_alive(shim):
        return RunState.RUNNING
    return RunState.GONE if shim.boot != current_boot_id() else None


def _look() -> Mapping[tuple[str, str], Sequence[RunProcess]]:
    found: defaultdict[tuple[str, str], list[RunProcess]] = defaultdict(list)
    for process in run_processes():
        found[process.run, process.incarnation].append(process)
    return found
