"""Which memory was short, from the words of Spark, YARN, Kubernetes and Python about a failure.

`heap` is that of a JVM (spark.driver.memory, spark.executor.memory). `overhead` is memory beside it: threads,
classes, direct buffers and Python. `container` is the limit that heap and overhead have together, where a
kernel or a cluster ended the process, so that the part that grew is unknown.
"""

import re

SHORTAGES = frozenset(
    f"{process}.{part}" for process in ("driver", "executor") for part in ("heap", "overhead", "container")
)
"""All values of the field `short_of` of an error."""

# Spark quotes the error of a task behind one of these. The bound: the text is that of users, of any length.
_OF_TASK = r"(?:most recent failure: |Lost task \d|ExecutorLostFailure)[\s\S]{0,4000}?"
# "Requested array size exceeds VM limit" is no lack of memory; no other heap would help.
_HEAP = (
    r"OutOfMemoryError: (?:Java heap space|GC overhead limit exceeded"
    r"|Not enough memory to build and broadcast)"  # Spark's own, of a driver
)
_OVERHEAD = (
    r"OutOfMemoryError: (?:(?:Cannot reserve \d+ bytes of )?direct buffer memory|Metaspace"
    r"|Compressed class space|unable to create (?:new )?native thread)|OutOfDirectMemoryError"
)
PYTHON_MEMORY = r"(?m:^[ \t]*(?:\w+\.){0,8}_?(?:Array|Arrow)?MemoryError\b)"
"""The last line of the traceback of a Python process without memory."""

TASK_MEMORY = (
    r"SparkOutOfMemoryError|(?:UNABLE_TO_ACQUIRE|AGGREGATE_OUT_OF|POINTER_ARRAY_OUT_OF|PROVIDER_OUT_OF)_MEMORY"
    r"|acquire \d+ bytes memory to build hash relation|not enough memory to build hash map"
    r"|allocate memory to grow BytesToBytesMap"
)
"""What Spark says where tasks get no memory for execution; some of it in a plain SparkException."""

PATTERNS = {
    # 52 is SparkExitCode.OOM. Only tasks acquire execution memory, of which the heap is the source.
    "executor.heap": (
        rf"{_OF_TASK}{_HEAP}|(?:exited with|exit) code:? 52\b|exit status:? 52\b|{TASK_MEMORY}"
    ),
    "driver.heap": _HEAP,
    "executor.overhead": rf"{_OF_TASK}(?:{_OVERHEAD})|{PYTHON_MEMORY}",
    "driver.overhead": _OVERHEAD,
    "executor.container": (
        r"(?:exited with|exit) code:? 137\b|exit status:? 137\b|OOMKilled"
        r"|(?:beyond|exceeding) (?:the )?'?(?:physical|virtual)'? memory limit"
    ),
}
"""Regular expressions that are valid in Java too, with flag `i`: the first one that matches decides.

So the heap is preferred where an error names several, and a container is last: its end has more causes.
"""


def shortage(message: str, *, is_local: bool = False) -> str | None:
    """What was short according to an error that a driver reports; None if that is not known.

    `is_local`: the JVM of the driver is also the executor, so the memory of its tasks is the driver's.
    """
    found = next((name for name, pattern in PATTERNS.items() if _compiled(pattern).search(message)), None)
    if found is None or not is_local:
        return found
    return found.replace("executor.", "driver.")


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def valid_shortage(value: object) -> str | None:
    """The value if it is one of SHORTAGES; None for all others, because drivers may write anything."""
    return value if isinstance(value, str) and value in SHORTAGES else None


def patterns_in_java() -> list[dict[str, str]]:
    """Each name with its pattern and the flag, in order."""
    return [{"name": name, "pattern": f"(?i){pattern}"} for name, pattern in PATTERNS.items()]
