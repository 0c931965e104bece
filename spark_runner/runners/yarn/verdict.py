"""Maps YARN's states and diagnostics to a driver's state, exit code and cause of failure.

States: Hadoop's YarnApplicationState and FinalApplicationStatus; exit codes of containers: its
ContainerExitStatus; exit codes 10 to 17: Spark's ApplicationMaster.
"""

import re
from dataclasses import dataclass

from spark_runner.protocol import exit_codes
from spark_runner.protocol.redacted import redacted
from spark_runner.runners.base import Failure, RunState
from spark_runner.runners.yarn.api import YarnApplication

APPLICATION_FAILED = "ApplicationFailed"
"""The type of a failure of which only YARN's diagnostics are known."""

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
    exit_codes.HEAP_FULL: ("memory", "HeapFull"),
    137: ("memory", "Killed"),  # by the kernel or by cgroups, unless a kill was requested here
    143: ("infrastructure", "Terminated"),
}
"""Why the container of the driver ended, by its exit code: error class and type."""

_SHORT_OF = {
    "HeapFull": "driver.heap",
    "MemoryLimit": "driver.container",
    "Killed": "driver.container",
}
"""Which memory of the driver was short, by the type of the failure."""

_SILENT = re.compile(r"ApplicationMaster for attempt \S+ timed out")  # Hadoop's RMAppAttemptImpl

_NO_SESSION = 13  # the driver ended before it had a session, so no user code wrote to the log
_CLASSES = re.compile(r'Exception in thread "[^"]*" |Caused by: |[\w.$]+\.\w*(?:Exception|Error): ')
_REFUSALS = (  # pattern, type, whether a new submission may succeed
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
    """The state of a driver according to its cluster."""

    state: RunState
    exit_code: int | None = None
    detail: str = ""
    failure: Failure | None = None
    is_end_observed: bool = True


def verdict_of(application: YarnApplication) -> ApplicationVerdict:
    """The verdict from an application's states; a pair that is not listed is unknown, never a failure."""
    # Without the parts of logs that YARN copies into them: users control that text.
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
            failure = Failure("killed", "Killed", words or "the application was killed in YARN")
            return ApplicationVerdict(RunState.EXITED, exit_codes.KILLED, words, failure)
        case state, final_status:
            return ApplicationVerdict(
                RunState.UNKNOWN, detail=f"YARN reports {state} and {final_status}: {words}"
            )


def refusal(words: str) -> Failure | None:
    """The reason why YARN refused an application; None if `words` contain none."""
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
        failure = Failure(error_class, kind, words, short_of=_SHORT_OF.get(kind))
        # The containers of a lost node may still run.
        return ApplicationVerdict(
            RunState.EXITED, exit_code, words, failure, is_end_observed=code != _ABORTED
        )
    if _BEYOND_MEMORY.search(diagnostics):
        return ApplicationVerdict(
            RunState.EXITED,
            None,
            words,
            Failure("memory", "MemoryLimit", words, short_of=_SHORT_OF["MemoryLimit"]),
        )
    failure = refusal(diagnostics) or Failure(
        "infrastructure", APPLICATION_FAILED, words or "YARN gives no reason"
    )
    # An application that YARN gave up as silent may only be cut off, and still run.
    return ApplicationVerdict(
        RunState.EXITED, None, words, failure, is_end_observed=_SILENT.search(diagnostics) is None
    )


def _shortened(text: str) -> str:
    masked: str = redacted(
        " ".join(text.split())
    )  # before cutting: a part of a secret would not be recognized
    return masked[:_MAX_MESSAGE_CHARACTERS]


def _without_class(line: str) -> str:
    """The line without thread names and exception classes."""
    return _CLASSES.sub("", line)
