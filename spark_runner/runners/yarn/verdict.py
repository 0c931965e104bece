"""What YARN's states and words mean for a driver: state, exit code, and why it ended.

States: Hadoop's YarnApplicationState and FinalApplicationStatus; exit codes of containers: its
ContainerExitStatus; exit codes 10 to 17: Spark's ApplicationMaster.
"""

import re
from dataclasses import dataclass

from spark_runner import exit_codes
from spark_runner.redacted import redacted
from spark_runner.runners.base import Failure, RunState
from spark_runner.runners.yarn.api import YarnApplication

APPLICATION_FAILED = "ApplicationFailed"
"""The type of a failure of which nothing is known but words."""

_LIVE = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"})
_MAX_MESSAGE_CHARACTERS = 1000
_USER_EXIT = re.compile(r"User application exited with (?:status )?(\d+)")
_MASTER_EXIT = re.compile(r"AM Container for \S+ exited with\s+exitCode: (-?\d+)")
_COPIED = re.compile(
    r"\s*(\[[^\]\n]*\]\s*)?"
    r"(Container exited with a non-zero exit code|Last \d+ bytes of|Dump of the process-tree)"
)
_BEYOND_MEMORY = re.compile(r"beyond (?:the )?'?(?:physical|virtual)'? memory limit", re.IGNORECASE)
_KILLED_FOR_EXCEEDING_VMEM, _KILLED_FOR_EXCEEDING_PMEM = -103, -104
_ABORTED, _DISKS_FAILED, _PREEMPTED = -100, -101, -102
_CONTAINERS = {
    _ABORTED: ("infrastructure", "NodeLost"),
    _DISKS_FAILED: ("infrastructure", "DisksFailed"),
    _PREEMPTED: ("infrastructure", "Preempted"),
    _KILLED_FOR_EXCEEDING_VMEM: ("memory", "MemoryLimit"),
    _KILLED_FOR_EXCEEDING_PMEM: ("memory", "MemoryLimit"),
    137: ("memory", "Killed"),  # by the kernel or by cgroups, when nobody here asked for it
    143: ("infrastructure", "Terminated"),
}
"""Why the container of the driver ended, by its exit code: error class and type."""

_SILENT = re.compile(r"ApplicationMaster for attempt \S+ timed out")  # Hadoop's RMAppAttemptImpl

_NO_SESSION = 13  # the driver ended before it had one: user code had not begun, so nobody else wrote the log
_CLASSES = re.compile(r'Exception in thread "[^"]*" |Caused by: |[\w.$]+\.\w*(?:Exception|Error): ')
_REFUSALS = (  # words, type, whether another submission may have more luck
    (r"to unknown queue", "UnknownQueue", False),
    (r"[Qq]ueue \S+ doesn't exist|non-leaf queue|is not a leaf queue", "UnknownQueue", False),
    (r"(?:already has|has reached)[^\n]*applications?|maximum-applications", "QueueFull", True),
    (r"is STOPPED|is DRAINING", "QueueStopped", True),
    (r"does not have permission to submit|cannot submit applications? to queue", "NotPermitted", False),
    (
        r"above the max threshold|greater than maximum allowed allocation|InvalidResourceRequest",
        "Resources",
        False,
    ),
    (
        r"ConnectException|NoRouteToHost|UnknownHostException|SocketTimeout|StandbyException",
        "Unreachable",
        True,
    ),
)


@dataclass(frozen=True, slots=True)
class ApplicationVerdict:
    """What is known of a driver from its cluster."""

    state: RunState
    exit_code: int | None = None
    detail: str = ""
    failure: Failure | None = None
    is_end_observed: bool = True


def verdict_of(application: YarnApplication) -> ApplicationVerdict:
    """What an application says; a pair of states that is not listed here is unknown, never a failure."""
    # Not the parts of logs that YARN copies into them: those are the words of users.
    diagnostics = _COPIED.split(application.diagnostics, maxsplit=1)[0]
    words = _shortened(diagnostics)
    match application.state, application.final_status:
        case state, _ if state in _LIVE:
            return ApplicationVerdict(RunState.RUNNING, detail=words)
        case "FINISHED", "SUCCEEDED":
            return ApplicationVerdict(RunState.EXITED, 0)
        case "FINISHED" | "FAILED", "FAILED":
            return _failed(diagnostics, application.diagnostics[len(diagnostics) :], words)
        case ("KILLED", _) | ("FINISHED", "KILLED"):
            failure = Failure("killed", "Killed", words or "somebody has killed it in YARN")
            return ApplicationVerdict(RunState.EXITED, exit_codes.KILLED, words, failure)
        case state, final_status:
            return ApplicationVerdict(
                RunState.UNKNOWN, detail=f"YARN says {state} and {final_status}: {words}"
            )


def refusal(words: str) -> Failure | None:
    """What kept YARN from taking an application, None where the words say nothing of that."""
    for pattern, kind, is_passing in _REFUSALS:
        if found := re.search(pattern, words):
            line = next(line for line in words[: found.end()].splitlines()[::-1] if line)
            start = words.rfind(line)
            whole = words[start:].partition("\n")[0]
            return Failure("submission", kind, _shortened(_without_class(whole)), is_passing)
    return None


def _failed(diagnostics: str, copied: str, words: str) -> ApplicationVerdict:
    if found := _USER_EXIT.search(diagnostics):
        return ApplicationVerdict(RunState.EXITED, int(found[1]), words)
    if found := _MASTER_EXIT.search(diagnostics):
        code = int(found[1])
        if code == _NO_SESSION and (said := _USER_EXIT.findall(copied)):
            return ApplicationVerdict(RunState.EXITED, int(said[-1]), words)
        error_class, kind = _CONTAINERS.get(code, ("infrastructure", "ApplicationMaster"))
        if _BEYOND_MEMORY.search(diagnostics):
            error_class, kind = "memory", "MemoryLimit"
        exit_code = code if code > 0 else None
        failure = Failure(error_class, kind, words)
        # Of a lost node nobody knows whether its containers run on.
        return ApplicationVerdict(
            RunState.EXITED, exit_code, words, failure, is_end_observed=code != _ABORTED
        )
    if _BEYOND_MEMORY.search(diagnostics):
        return ApplicationVerdict(RunState.EXITED, None, words, Failure("memory", "MemoryLimit", words))
    failure = refusal(diagnostics) or Failure(
        "infrastructure", APPLICATION_FAILED, words or "YARN gives no reason"
    )
    # One that YARN has given up as silent may be cut off, and run on.
    return ApplicationVerdict(
        RunState.EXITED, None, words, failure, is_end_observed=_SILENT.search(diagnostics) is None
    )


def _shortened(text: str) -> str:
    masked: str = redacted(" ".join(text.split()))  # before it is cut: half a secret is none to know
    return masked[:_MAX_MESSAGE_CHARACTERS]


def _without_class(line: str) -> str:
    """The line without the names of threads and of classes of exceptions."""
    return _CLASSES.sub("", line)
