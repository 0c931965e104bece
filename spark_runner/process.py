"""Which process is meant: a process id alone is given to another as soon as it is free."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from spark_runner.proc import PROC, ProcessStat, boot_id, pid_namespace, stat

RUN_VARIABLE = "ORCHESTRATOR_RUN"  # in the environment of everything that belongs to a run
INCARNATION_VARIABLE = "ORCHESTRATOR_INCARNATION"
RUN_DIR_VARIABLE = "ORCHESTRATOR_RUN_DIR"  # where a driver leaves its logs and its outcome
# Bytes that all processes of a driver may come to use together.
MEMORY_VARIABLE = "ORCHESTRATOR_DRIVER_MEMORY"
TERMINATION_LOG_VARIABLE = "ORCHESTRATOR_TERMINATION_LOG"  # a file for the outcome, of 4 KiB at most
_ENDED_STATES = ("Z", "X")  # a zombie runs nothing; it only waits to be reaped
_PF_KTHREAD = 0x00200000  # <linux/sched.h>: a thread of the kernel, which never has an environment
_EXEC_SECONDS = 0.5  # a starved process is through by then; who wiped both on purpose must not hold us up
_EXEC_LOOK_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process of one boot of one machine, never mistaken for a later one with the same number."""

    pid: int
    start: int  # clock ticks since boot: field 22 of proc_pid_stat(5)
    boot: str
    pid_namespace: str = ""  # in which it has this number; empty = not noted

    @property
    def is_out_of_sight(self) -> bool:
        """Whether it is of another PID namespace, as of another container: nobody here can say how it is."""
        known = {"", current_pid_namespace()}
        return self.boot == current_boot_id() and self.pid_namespace not in known


@dataclass(frozen=True, slots=True)
class RunProcess:
    """A live process that carries the names of a run in its environment; each `user` may start such a one."""

    pid: int
    run: str
    incarnation: str
    user: int


@cache
def current_boot_id() -> str:
    """The id that the kernel drew when it booted."""
    return boot_id()


@cache
def current_pid_namespace() -> str:
    """The PID namespace of this process."""
    return pid_namespace()


def identify(pid: int) -> ProcessId | None:
    """The identity of the live process with this number; None when there is none."""
    start = _start_of_live(pid)
    return None if start is None else ProcessId(pid, start, current_boot_id(), current_pid_namespace())


def is_alive(process: ProcessId) -> bool:
    """Whether exactly this process is seen to be there; a zombie is not. One out of sight is not seen."""
    is_here = process.boot == current_boot_id() and not process.is_out_of_sight
    return is_here and _start_of_live(process.pid) == process.start


def run_processes() -> list[RunProcess]:
    """Every live process of every run, as far as we may read their environments.

    What a program did to its own environment after its start is not seen, nor a process that was
    started with an empty one: those are the shim's part, who is their sub-reaper. Two passes: in one
    alone, a process that forks and ends while it is under way could hide its child.
    """
    return list({process: None for _ in range(2) for process in _pass_over_processes()})


def processes_of(run: str) -> list[int]:
    """The live processes of one run."""
    return [process.pid for process in run_processes() if process.run == run]


def environments(proc: Path = PROC) -> Iterator[tuple[int, bytes]]:
    """Every process whose environment we may read, with the one that it was started with."""
    for entry in os.listdir(proc):  # noqa: PTH208  # names, not Path objects, for hundreds of processes
        if entry.isdecimal():
            with contextlib.suppress(OSError):  # another user's, or ended while we looked
                yield int(entry), _environment(entry, proc)


def _pass_over_processes() -> Iterator[RunProcess]:
    for pid, environment in environments():
        if (run := value_in(environment, RUN_VARIABLE)) and _start_of_live(pid) is not None:
            with contextlib.suppress(OSError):  # it has ended
                user = (PROC / str(pid)).stat().st_uid
                yield RunProcess(pid, run, value_in(environment, INCARNATION_VARIABLE), user)


def _environment(pid: str, proc: Path) -> bytes:
    """The environment that a process was started with; raises OSError.

    In the middle of an exec a process has neither environment nor command line for a moment, which grows
    on a busy machine (seen): it must not pass for gone, so the end of the exec is waited for.
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
