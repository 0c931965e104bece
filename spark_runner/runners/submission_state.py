"""The state of a submission of this host: from its files and processes, and from spark-submit's output."""

import os
import re
import signal
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_runner.protocol.plain_file import open_plain
from spark_runner.protocol.process import ProcessId, RunProcess, current_boot_id, is_alive, run_processes
from spark_runner.protocol.redacted import redacted
from spark_runner.runners.base import Failure, RunState, Submission
from spark_runner.runners.run_directory import RunDirectory

_TAIL_BYTES = 64 * 1024
_MAX_CHARACTERS = 500
_UNRESOLVED = re.compile(r"unresolved dependency: ([^\s:\]]+)")
_MISSING = re.compile(
    r'^Exception in thread "main" java\.lang\.RuntimeException: \[.*unresolved dependency', re.MULTILINE
)
_OUT_OF_REACH = re.compile(r"Server access error at url (\S+) \((.*)\)|Host (\S+) not found")
_TROUBLE = re.compile(
    r'^(?:Exception in thread "main" (?P<thrown>.+)|(?P<said>(?:Error|Unrecognized|Invalid|Could not)\b.+))$',
    re.MULTILINE,
)
_OF_THE_PROGRAM = "SparkUserAppException"  # reports an end of the program, not of spark-submit


def missing_packages(words: str) -> Failure | None:
    """The failure about packages that Spark did not find; None if `words` report none.

    If a repository did not answer, another submission may succeed.
    """
    if not _MISSING.search(words):
        return None
    names = ", ".join(
        dict.fromkeys(name.replace("#", ":").replace(";", ":") for name in _UNRESOLVED.findall(words))
    )
    if silent := _OUT_OF_REACH.search(words):
        reason = f"{silent[1]}: {silent[2]}" if silent[1] else f"unknown host {silent[3]}"
        message = f"packages {names} could not be fetched: a repository does not answer ({reason})"
        return Failure("submission", "RepositoryUnreachable", message, is_passing=True)
    message = (
        f"packages {names} are in no repository: correct `spark.packages` (group:artifact:version), or set "
        "their repository as spark.jars.repositories in `conf`"
    )
    return Failure("definition", "PackagesMissing", message)


def trouble(words: str) -> str:
    """The last line in which a JVM gives the cause of its end; empty without one."""
    found = [match["thrown"] or match["said"] for match in _TROUBLE.finditer(words)]
    said = next((line for line in reversed(found) if _OF_THE_PROGRAM not in line), "")
    masked: str = redacted(said)  # before cutting: a part of a secret would not be recognized
    return masked[:_MAX_CHARACTERS]


def tail(path: Path) -> str:
    """The end of a log; empty if the log does not exist."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


_KILLED = 128 + signal.SIGKILL
_MIB = 1 << 20


def memory_failure(exit_code: int | None, usage: Mapping[str, Any] | None) -> Failure | None:
    """The failure of a driver that got SIGKILL while the kernel killed for memory; None for all others."""
    if exit_code != _KILLED or usage is None or not usage.get("oom_kill"):
        return None
    peak, limit = usage.get("rss_peak_bytes"), usage.get("cgroup_limit_bytes")
    had = f" (its processes used at most {peak // _MIB:,} MiB)" if isinstance(peak, int) else ""
    if isinstance(limit, int):
        cause = f"the limit of its control group {usage.get('cgroup')} is {limit // _MIB:,} MiB"
        remedy = "Raise the limit of the group (for a service: MemoryMax=)"
    else:
        cause, remedy = "the host had none left", "Give the host more memory"
    message = (
        f"the kernel ended its driver for lack of memory{had}: {cause}. {remedy}, run fewer jobs at once "
        "(slots), or give this job less: spark.driver.memory is only the heap; Python and the JVM itself "
        "need memory on top of it"
    )
    return Failure("memory", "OutOfMemoryKill", message, short_of="driver.container")


UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # from a damaged file in a run directory

# The live processes by run and incarnation; a function, because a scan of all processes is expensive.
ProcessScan = Callable[[], Mapping[tuple[str, str], Sequence[RunProcess]]]


def submission_of(directory: RunDirectory, scan: ProcessScan) -> Submission:
    """The submission in a run directory; `scan` is called only if the files do not settle its state."""
    state, exit_code, detail = RunState.UNKNOWN, None, ""
    try:
        state, exit_code = _state(directory, scan)
        if state is RunState.GONE:
            detail = directory.trouble()
        elif state is RunState.UNKNOWN:
            detail = (
                "it was started in another PID namespace of this host, and its processes are not visible here"
            )
    except UNREADABLE as error:
        detail = f"cannot read {directory.path}: {error!r}"
    usage = directory.usage() if state is RunState.EXITED else None
    outcome, failure = directory.outcome(), memory_failure(exit_code, usage)
    if exit_code and outcome is None and failure is None:
        words = tail(directory.path / "stderr.log")
        failure, detail = missing_packages(words), trouble(words)
    return Submission(
        directory.run,
        directory.incarnation,
        state,
        exit_code,
        detail=detail,
        outcome=outcome,
        failure=failure,
        usage=usage,
        ended=directory.ended() if state is RunState.EXITED else "",
    )


def scan_processes() -> Mapping[tuple[str, str], Sequence[RunProcess]]:
    """The live processes of all runs on this host, by run and incarnation."""
    found: defaultdict[tuple[str, str], list[RunProcess]] = defaultdict(list)
    for process in run_processes():
        found[process.run, process.incarnation].append(process)
    return found


def _state(directory: RunDirectory, scan: ProcessScan) -> tuple[RunState, int | None]:
    if (code := directory.exit_code()) is not None:
        return RunState.EXITED, code
    record = directory.shim()
    if record is None:
        if directory.is_young() and not directory.is_kill_requested():
            return RunState.RUNNING, None  # or about to start
    elif (state := _state_of(record.shim)) is not None:
        return state, None
    users = directory.users
    named = scan().get((directory.run, directory.incarnation), ())
    processes = [process for process in named if process.user in users]
    # Read again, last: the shim may have written the file and ended since the first read.
    if (code := directory.exit_code()) is not None:
        return RunState.EXITED, code
    return RunState.RUNNING if processes else RunState.GONE, None


def _state_of(shim: ProcessId) -> RunState | None:
    """The state that follows from the shim alone; None if it is gone, because its driver may survive it."""
    if shim.is_out_of_sight:
        return RunState.UNKNOWN
    if is_alive(shim):
        return RunState.RUNNING
    return RunState.GONE if shim.boot != current_boot_id() else None
