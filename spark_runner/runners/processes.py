"""Child processes of this host: reaping, and the kill ladder: ask, wait, force, verify."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from spark_runner.protocol.errors import KillError
from spark_runner.protocol.process import ProcessId, RunProcess, is_alive, run_processes
from spark_runner.runners.run_directory import RunDirectory

_COLLECT_SECONDS = 1.0  # the longest time that an ended child stays a zombie


class Children:
    """Starts detached children, and reaps them by id soon after their end.

    They are not double-forked: in a container this process may have pid 1, which becomes their parent anyway.
    It keeps no Popen objects, because each would have to be kept to avoid a warning.
    """

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._is_collecting = False  # a thread reaps as long as there are children
        self._lock = threading.Lock()  # with two reaping threads, the second could hit a reused pid

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stderr: Path,
        pass_fds: Sequence[int],
    ) -> int:
        """Start a child in its own session, without a terminal; raises OSError."""
        with stderr.open("ab") as log:
            child = subprocess.Popen(  # noqa: SIM115, RUF100  # it outlives this call
                argv,
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        with self._lock:
            self._pids.add(child.pid)
            starts, self._is_collecting = not self._is_collecting, True
        child.returncode = 0  # this class waits for the pid; so the object does not warn
        if starts:
            threading.Thread(target=self._collect, name="children", daemon=True).start()
        return child.pid

    def reap(self) -> None:
        """Reap the children that have ended, so that none remains a zombie."""
        with self._lock:
            for pid in list(self._pids):
                try:
                    ended, _ = os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:  # other code in this process waits for all children
                    ended = pid
                if ended:
                    self._pids.discard(pid)

    def _collect(self) -> None:
        while True:
            time.sleep(_COLLECT_SECONDS)
            self.reap()
            with self._lock:
                if not self._pids:
                    self._is_collecting = False
                    return


SHIM_SECONDS = 3.0  # after the grace period: for the shim's own KILL, reaping, and a durable exit file
FORCED_SECONDS = 5.0  # KILL works at once, except on a process blocked in the kernel (a dead network disk)
_LOOK_SECONDS = 0.05


def kill_run(run: str, directories: Sequence[RunDirectory], grace_seconds: float) -> None:
    """End every process of a run; raises KillError if some remain, or are not visible from here.

    A live shim does the work itself, because only it cannot mistake a process: TERM to the driver's group,
    the grace period, KILL for all its descendants, exit file. Processes without a live shim, or that lose it
    now, get their TERM from here. KILL from here is for them and for shims that hang.
    """
    open_ones = [directory for directory in directories if directory.exit_code() is None]
    for directory in open_ones:
        directory.request_kill(grace_seconds)  # a shim that is still starting will start no driver
    _check_in_sight(run, open_ones)
    for shim in _live_shims(open_ones).values():
        _send(shim.pid, signal.SIGTERM)
        _send(shim.pid, signal.SIGCONT)  # in case it was stopped by a signal
    asked: set[int] = set()

    def is_gone() -> bool:
        shims = _live_shims(open_ones)
        if open_ones and len(shims) == len(open_ones):
            return False  # the shims do the work: no scan of all processes is needed
        processes = _processes(run, directories)
        for process in processes:
            if process.incarnation not in shims and process.pid not in asked:
                asked.add(process.pid)
                _send(process.pid, signal.SIGTERM)
        return not processes

    if _wait(is_gone, grace_seconds + SHIM_SECONDS):
        return
    spared = {shim.pid for shim in _live_shims(open_ones).values()}  # they have yet to write an exit file
    _kill(open_ones, _processes(run, directories), spared)
    if _wait(is_gone, FORCED_SECONDS):
        return
    _kill(open_ones, _processes(run, directories), set())
    if not _wait(is_gone, FORCED_SECONDS):
        left = ", ".join(map(str, sorted(process.pid for process in _processes(run, directories))))
        raise KillError(f"processes of run {run} still exist after KILL: {left}")


def _live_shims(directories: Iterable[RunDirectory]) -> dict[str, ProcessId]:
    """The live shims by incarnation."""
    records = {directory.incarnation: directory.shim() for directory in directories}
    return {key: record.shim for key, record in records.items() if record and is_alive(record.shim)}


def _check_in_sight(run: str, directories: Iterable[RunDirectory]) -> None:
    records = {directory.incarnation: directory.shim() for directory in directories}
    hidden = [key for key, record in records.items() if record and record.shim.is_out_of_sight]
    if hidden:
        raise KillError(
            f"run {run} was started in another PID namespace of this host and cannot be ended from here: "
            f"submission {', '.join(hidden)}"
        )


def _kill(directories: Iterable[RunDirectory], processes: Iterable[RunProcess], spared: set[int]) -> None:
    for directory in directories:
        record = directory.shim()
        if record and is_alive(record.driver):  # the group includes processes that emptied their environment
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(record.driver.pid, signal.SIGKILL)
    for process in processes:
        if process.pid not in spared:
            _send(process.pid, signal.SIGKILL)


def _processes(run: str, directories: Iterable[RunDirectory]) -> list[RunProcess]:
    users = {os.geteuid()}.union(*(directory.users for directory in directories))
    return [process for process in run_processes() if process.run == run and process.user in users]


def _send(pid: int, number: int) -> None:
    # Not permitted, or gone: the verification at the end shows the result.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _wait(is_gone: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_gone():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
