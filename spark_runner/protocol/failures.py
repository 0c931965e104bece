"""Classifies errors of Spark by their messages: `retry.on` of a definition selects by class."""

import re
from dataclasses import dataclass

from spark_runner.protocol.shortages import PYTHON_MEMORY, TASK_MEMORY

_MISMATCH = re.compile(r"different version: (\d+\.\d+) than that in driver: (\d+\.\d+)")
# 52 is the exit code of an executor whose heap is full (SparkExitCode.OOM); 137 is SIGKILL, which a kernel or
# a container sends to a process that uses too much memory.
_MEMORY = re.compile(
    r"java\.lang\.OutOfMemoryError|OutOfDirectMemoryError|OOMKilled"
    r"|(?:exited with|exit) code:? (?:52|137)\b|exit status:? (?:52|137)\b"
    r"|(?:beyond|exceeding) (?:the )?'?(?:physical|virtual|memory)[\w' ]* limit"
    rf"|{TASK_MEMORY}|{PYTHON_MEMORY}",
    re.IGNORECASE,
)
_INFRASTRUCTURE = re.compile(
    r"ExecutorLostFailure|FetchFailedException|MetadataFetchFailedException|Slave lost|Worker lost|"
    r"executor decommission finished|No space left on device|SparkContext was shut down|"
    r"Master removed our application|^StoppedAtStart: |"
    # An executor that is ending, for example as its heap was full, refuses its next task.
    r"Executor\$TaskRunner@\w+ rejected from |"
    # Stores of objects and catalogs that do not answer.
    r"AWSServiceThrottledException|iceberg\.exceptions\.(?:ServiceUnavailable|ServiceFailure|CommitStateUnknown)|"
    r"java\.net\.(?:ConnectException|UnknownHostException|NoRouteToHostException|SocketTimeoutException)"
)
_KILLED = re.compile(r"Application was killed by the user|Master removed our application: KILLED")
# The first line of the Java error that kept Spark from starting its event log.
_EVENT_LOG = re.compile(
    r"(?:^|\n): (?P<why>[^\n]{1,500})\n(?:[ \t]+at [^\n]{0,500}\n){0,60}?"
    r"[ \t]+at org\.apache\.spark\.scheduler\.EventLoggingListener\.start\("
)
_SUBMISSION = re.compile("^RefusedAtStart: ")

# Errors that a Java program raises again on every run, by their class.
_DEFINITION = (
    r"^(?:org\.apache\.spark\.sql\.(?:AnalysisException|catalyst\.ExtendedAnalysisException)"
    r"|org\.apache\.spark\.sql\.catalyst\.parser\.ParseException"
    r"|org\.apache\.hadoop\.mapred(?:uce\.lib\.input)?\.InvalidInputException"
    r"|(?:java\.lang\.)?(?:ClassNotFoundException|NoClassDefFoundError|NoSuchMethodException|NoSuchMethodError)"
    # Java raises it for any file that it cannot open; the system error comes last: (Too many open files)
    r"|java\.io\.FileNotFoundException(?!: .*\((?!No such file|Is a dir|Not a dir)[A-Z][\w ]*\)$)"
    r"|java\.nio\.file\.NoSuchFileException): "
)

PATTERNS = {
    "memory": f"(?i){_MEMORY.pattern}",
    "infrastructure": _INFRASTRUCTURE.pattern,
    "definition": _DEFINITION,
}
"""One pattern per class other than the user's, as regular expressions that are valid in Java too."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A class of errors of `retry.on`, and a message for the user where Spark's own is not helpful."""

    error_class: str  # "user", "memory", "killed", "infrastructure" or "submission"
    words: str = ""


def classify(message: str) -> FailureKind:
    """The kind of failure in a message of Spark; an unknown message is an error of the user."""
    if mismatch := _MISMATCH.search(message):
        worker, driver = mismatch.groups()
        return FailureKind(
            "user",
            f"the executors run Python {worker}, the driver runs Python {driver}: they must be the same "
            "version; set spark.pyspark.python to that one on the nodes of the cluster",
        )
    return FailureKind(_class_of(message), _of_event_log(message))


def _of_event_log(message: str) -> str:
    found = _EVENT_LOG.search(message)
    if found is None:
        return ""
    return (
        f"Spark cannot write its event log: {found['why']}. Spark needs a folder that exists: create that of "
        "spark.eventLog.dir (the setting `event_logs` of the pool), or set spark.eventLog.enabled to false "
        "in `conf`"
    )


def _class_of(message: str) -> str:
    if _MEMORY.search(message):
        return "memory"
    if _KILLED.search(message):
        return "killed"
    if _INFRASTRUCTURE.search(message):
        return "infrastructure"
    if _SUBMISSION.search(message):
        return "submission"
    return "user"
