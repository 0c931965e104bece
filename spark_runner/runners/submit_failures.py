"""Finds in spark-submit's output why no driver started: missing packages, or a JVM that cannot start."""

import os
import re
from pathlib import Path

from spark_runner.protocol.plain_file import open_plain
from spark_runner.protocol.redacted import redacted
from spark_runner.runners.base import Failure

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
