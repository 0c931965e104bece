"""The spark-submit processes of this host, each under a shim that outlives the worker.

With a local master, and in client mode on a cluster, such a process is the driver itself. In cluster mode it
submits the driver to the cluster.
"""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from spark_runner.protocol.errors import KillError, SubmissionError
from spark_runner.protocol.process import current_boot_id, current_pid_namespace
from spark_runner.runners.base import LogFile, RunState, Submission, SubmissionPlace, SubmitRequest
from spark_runner.runners.launch import Launch, QuickStart, launch_driver, spark_submit_command
from spark_runner.runners.processes import Children, kill_run
from spark_runner.runners.run_as import LINKS, UserAccount, Users, change_owner
from spark_runner.runners.run_directory import (
    WORK,
    RunDirectory,
    log_files,
    remove_run,
    run_directories,
    run_directory,
    state_id,
)
from spark_runner.runners.submission_state import UNREADABLE, scan_processes, submission_of
from spark_runner.shim import shim


class SparkSubmits:
    """Starts, finds, watches and ends spark-submits.

    All state is in the state directory, so any worker on this host can take over. With `owned=True` they end
    with this process, even by KILL; a forked child that keeps its open files would keep them alive.
    `spark_submit` replaces the program and its leading arguments. With `quick_start` the JVMs of drivers
    start sooner. `passed_on` are variables of this process's environment that drivers get in addition to
    those of `environment.for_drivers`. `users` selects the drivers that run as another user.
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
        """Release the processes; with `owned=True` this ends them."""
        if self._owner_pipe:
            for end in self._owner_pipe:
                os.close(end)
            self._owner_pipe = None

    @cached_property
    def _store(self) -> str:
        return state_id(self.state_dir)

    def place(self, backend: str, cluster: Mapping[str, str] | None = None) -> SubmissionPlace:
        """This PID namespace of this host in its present boot.

        Raises SubmissionError without a usable state directory.
        """
        host, boot = socket.gethostname(), current_boot_id()
        return SubmissionPlace(backend, host, boot, self._store, cluster or {}, current_pid_namespace())

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether `place` is this state directory on this host; nothing of an earlier boot still runs."""
        return self.place(place.backend).is_at(place)

    @property
    def shared_dir(self) -> Path:
        """The folder that the drivers of all users may read and none can change."""
        return self.state_dir if self.users is None else self.users.folder

    @property
    def conf_dir(self) -> Path:
        """The empty SPARK_CONF_DIR of drivers."""
        return self.state_dir / "spark-conf" if self.users is None else self.users.conf_dir

    def user_of(self, request: SubmitRequest) -> UserAccount | None:
        """The user that a driver on this host runs as; None for the worker's own user."""
        return None if self.users is None else self.users.of_pool(request.pool)

    def start_driver(self, request: SubmitRequest, driver_main: Path) -> Submission:
        """Start a spark-submit that is the driver itself and runs `driver_main`; raises SubmissionError."""
        return self.start(
            request,
            lambda directory: launch_driver(
                request,
                directory,
                driver_main=driver_main,
                shared_dir=self.shared_dir,
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
        """Start a spark-submit under its own shim, as `user` if one is given; raises SubmissionError.

        `prepare` writes its files into the run directory and returns the call of spark-submit. The plan is
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
                change_owner(directory.work, user)
            self._start_shim(directory, [*program, *launch.arguments], launch, user)
        except (OSError, TypeError, ValueError, SubmissionError) as error:
            # Nothing was started: `find` must list nothing.
            for path in (directory.work, directory.path):
                shutil.rmtree(path, ignore_errors=True)
            kind = type(error) if isinstance(error, SubmissionError) else SubmissionError
            raise kind(f"driver of run {request.run} not started: {error}") from error
        return Submission(request.run, request.incarnation, RunState.RUNNING)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` in the state directory, oldest first."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs; at most one scan of all processes, and none while all shims are alive."""
        self._children.reap()
        scan = cache(scan_processes)
        return {
            run: [submission_of(found, scan) for found in run_directories(self.state_dir, run)]
            for run in runs
        }

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, verified; raises KillError. An unknown run is no error."""
        directories = run_directories(self.state_dir, run)
        try:
            kill_run(run, directories, grace_seconds)
        except UNREADABLE as error:
            raise KillError(f"cannot end run {run}, its directory is unreadable: {error!r}") from error
        finally:
            self._children.reap()
        for directory in directories:
            directory.drop_scratch()

    def logs(self, run: str) -> list[LogFile]:
        """The existing logs of every submission of `run`, oldest first."""
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
