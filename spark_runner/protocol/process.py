"""Identity of processes: the kernel reuses a process id as soon as it is free."""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator.logs.files import write_json
from spark_runner.protocol.proc import PROC, ProcessStat, boot_id, pid_namespace, stat

RUN_VARIABLE = "ORCHESTRATOR_RUN"  # in the environment of every process of a run
INCARNATION_VARIABLE = "ORCHESTRATOR_INCARNATION"
KILL_REQUEST = "kill.json"  # {"grace_seconds": s}, written to end the driver; also prevents its start
RUN_DIR_VARIABLE = "ORCHESTRATOR_RUN_DIR"  # where a driver writes its logs and its outcome
# Bytes that all processes of a driver together may use.
MEMORY_VARIABLE = "ORCHESTRATOR_DRIVER_MEMORY"
TERMINATION_LOG_VARIABLE = "ORCHESTRATOR_TERMINATION_LOG"  # a file for the outcome, of 4 KiB at most
_ENDED_STATES = ("Z", "X")  # a zombie runs no code; it waits to be reaped
_PF_KTHREAD = 0x00200000  # <linux/sched.h>: a kernel thread, which has no environment
_EXEC_SECONDS = 0.5  # enough for a starved process; one that erased both on purpose must not block longer
_EXEC_LOOK_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process of one boot of one machine, distinct from any later one with the same number."""

    pid: int
    start: int  # clock ticks since boot: field 22 of proc_pid_stat(5)
    boot: str
    pid_namespace: str = ""  # in which it has this number; empty = not recorded

    @property
    def is_out_of_sight(self) -> bool:
        """Whether it is in another PID namespace, such as that of a container: its state is unknown here."""
        known = {"", current_pid_namespace()}
        return self.boot == current_boot_id() and self.pid_namespace not in known


@dataclass(frozen=True, slots=True)
class RunProcess:
    """A live process with the names of a run in its environment; any `user` may start one."""

    pid: int
    run: str
    incarnation: str
    user: int


@cache
def current_boot_id() -> str:
    """The id that the kernel generated at boot."""
    return boot_id()


@cache
def current_pid_namespace() -> str:
    """The PID namespace of this process."""
    return pid_namespace()


def identify(pid: int) -> ProcessId | None:
    """The identity of the live process with this number; None without one."""
    start = _start_of_live(pid)
    return None if start is None else ProcessId(pid, start, current_boot_id(), current_pid_namespace())


def is_alive(process: ProcessId) -> bool:
    """Whether this very process is alive and visible from here; a zombie is not alive."""
    is_here = process.boot == current_boot_id() and not process.is_out_of_sight
    return is_here and _start_of_live(process.pid) == process.start


def run_processes() -> list[RunProcess]:
    """Every live process of every run whose environment this process may read.

    A change that a program makes to its environment after its start is not visible, and neither is a process
    that was started with an empty one. The shim, their sub-reaper, ends those. Two passes: during a single
    one, a process that forks and ends could hide its child.
    """
    return list({process: None for _ in range(2) for process in _pass_over_processes()})


def processes_of(run: str) -> list[int]:
    """The live processes of one run."""
    return [process.pid for process in run_processes() if process.run == run]


def environments(proc: Path = PROC) -> Iterator[tuple[int, bytes]]:
    """Every process whose environment is readable, with its environment at the start."""
    for entry in os.listdir(proc):  # noqa: PTH208  # names, not Path objects, for hundreds of processes
        if entry.isdecimal():
            with contextlib.suppress(OSError):  # another user's, or it has just ended
                yield int(entry), _environment(entry, proc)


def _pass_over_processes() -> Iterator[RunProcess]:
    for pid, environment in environments():
        if (run := value_in(environment, RUN_VARIABLE)) and _start_of_live(pid) is not None:
            with contextlib.suppress(OSError):  # it has ended
                user = (PROC / str(pid)).stat().st_uid
                yield RunProcess(pid, run, value_in(environment, INCARNATION_VARIABLE), user)


def _environment(pid: str, proc: Path) -> bytes:
    """The environment of a process at its start; raises OSError.

    During an exec a process has neither environment nor command line for a moment, which is longer on a busy
    machine (observed). It must not count as gone, so this function waits for the end of the exec.
    """
    path = proc / pid / "environ"
    deadline = time.monotonic() + _EXEC_SECONDS
    while not (environment := path.read_bytes()):
        found = _stat_of_live(pid, proc)
        if found is None or found.flags & _PF_KTHREAD or time.monotonic() > deadline:
            return b""
        if (proc / pid / "cmdline").read_bytes():
            return path.read_bytes()
        time.sleep(_EXEC_LOOK_SECONDS)
    return environment


def value_in(environment: bytes, variable: str) -> str:
    """The value of a variable in an environment as the kernel shows it; empty without one."""
    prefix = os.fsencode(variable) + b"="
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return os.fsdecode(entry[len(prefix) :])
    return ""


def _start_of_live(pid: int) -> int | None:
    found = _stat_of_live(pid)
    return None if found is None else found.start


def _stat_of_live(pid: int | str, proc: Path = PROC) -> ProcessStat | None:
    """None for a process that ended, be it reaped or not."""
    try:
        found = stat(pid, proc)
    except OSError:  # ESRCH too: it ended between open and read
        return None
    return None if found.state in _ENDED_STATES else found


_PR_SET_PDEATHSIG = 1
APPLICATION_FILE = "application.json"  # in the run directory: the application, for the log collector


def end_with_parent() -> None:
    """Make the kernel end this process with the JVM that started it; otherwise it stays (measured)."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux: the owner of the run directory cleans up
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def keep_streams_apart() -> None:
    """Write to the logs of the run directory: Spark merges the stderr of a Python driver into its stdout."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if not directory:
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # Spark's pipe never ends: a reader would never return
    os.close(nothing)
    for stream, name in ((sys.stdout, "stdout.log"), (sys.stderr, "stderr.log")):
        stream.flush()
        path = Path(directory, name)
        if path.is_symlink():  # to an open file of the JVM: this user cannot open the log by name
            path = Path("/proc", str(os.getppid()), *path.readlink().parts[3:])
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, stream.fileno())
        os.close(log)


def name_application(facts: Mapping[str, str]) -> None:
    """Write the id of the application beside its logs, if there is a run directory."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    if not directory:
        return
    with contextlib.suppress(OSError):  # logs then name only the job
        write_json(Path(directory, APPLICATION_FILE), dict(facts), mode=None)
