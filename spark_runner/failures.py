"""What kind of failure an error of Spark is, by its words: what is retried, and with what, depends on it."""

import re
from dataclasses import dataclass

_MISMATCH = re.compile(r"different version: (\d+\.\d+) than that in driver: (\d+\.\d+)")
# 52 is how an executor ends itself when its heap is full (SparkExitCode.OOM); 137 is SIGKILL, with which a
# kernel or a container ends what uses too much.
_MEMORY = re.compile(
    r"java\.lang\.OutOfMemoryError|SparkOutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|OOMKilled"
    r"|(?:exited with|exit) code:? (?:52|137)\b|exit status:? (?:52|137)\b"
    r"|(?:beyond|exceeding) the '?(?:physical|virtual|memory)[\w' ]* limit",
    re.IGNORECASE,
)
_INFRASTRUCTURE = re.compile(
    r"ExecutorLostFailure|FetchFailedException|MetadataFetchFailedException|Slave lost|Worker lost|"
    r"executor decommission finished|No space left on device|SparkContext was shut down|"
    r"Master removed our application|^StoppedAtStart: "
)
_KILLED = re.compile(r"Application was killed by the user|Master removed our application: KILLED")
_SUBMISSION = re.compile("^RefusedAtStart: ")

# What comes back however often a program of Java is run again, by the class of the error.
_DEFINITION = (
    r"^(?:org\.apache\.spark\.sql\.(?:AnalysisException|catalyst\.ExtendedAnalysisException)"
    r"|org\.apache\.spark\.sql\.catalyst\.parser\.ParseException"
    r"|org\.apache\.hadoop\.mapred(?:uce\.lib\.input)?\.InvalidInputException"
    r"|(?:java\.lang\.)?(?:ClassNotFoundException|NoClassDefFoundError|NoSuchMethodException|NoSuchMethodError)"
    # Java says so of whatever it cannot open; the words of the system are at the end: (Too many open files)
    r"|java\.io\.FileNotFoundException(?!: .*\((?!No such file|Is a dir|Not a dir)[A-Z][\w ]*\)$)"
    r"|java\.nio\.file\.NoSuchFileException): "
)

PATTERNS = {
    "memory": f"(?i){_MEMORY.pattern}",
    "infrastructure": _INFRASTRUCTURE.pattern,
    "definition": _DEFINITION,
}
"""What tells each class that is not the user's, in regular expressions that Java understands, too."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A class of errors that `retry.on` knows, and words for the user where Spark's own are none."""

    error_class: str  # "user", "memory", "killed", "infrastructure" or "submission"
    words: str = ""


def kind_of(message: str) -> FailureKind:
    """The kind of failure that this message of Spark tells of; what it does not know is the user's."""
    if mismatch := _MISMATCH.search(message):
        worker, driver = mismatch.groups()
        return FailureKind(
            "user",
            f"the executors run Python {worker}, the driver runs Python {driver}: they must be the same "
            "version; set spark.pyspark.python to that one on the nodes of the cluster",
        )
    if _MEMORY.search(message):
        return FailureKind("memory")
    if _KILLED.search(message):
        return FailureKind("killed")
    if _INFRASTRUCTURE.search(message):
        return FailureKind("infrastructure")
    if _SUBMISSION.search(message):
        return FailureKind("submission")
    return FailureKind("user")
