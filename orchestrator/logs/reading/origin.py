"""The origin of a record as people see it: the program's output, Spark, or the orchestrator.

Spark and its launcher write to stderr, too: before log4j is configured, and in executors. Such lines count as
Spark's, not as the output of the program.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Origin(StrEnum):
    """Who wrote a record; the value is its prefix in the output of `job logs`."""

    OUT = "out"  # the program, on stdout
    ERR = "err"  # the program, on stderr
    SPARK = "spark"
    ORCHESTRATOR = "orch"


STREAMS = {"stdout": Origin.OUT, "stderr": Origin.ERR, "spark": Origin.SPARK}
"""The names of the streams of a job for users."""

# A line of log4j in the layout of Spark's own default.
_LOG_LINE = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) \S+: ")
# Notices without a level that matters: of the launcher, of the JVM, and of Ivy, which loads packages.
_NOTICE = re.compile(
    r"Setting default log level to |To adjust logging level use "
    r"|Using Spark's (?:default|repl) log4j profile: "
    r"|WARNING: (?:Using incubator modules: |An illegal reflective access|Illegal reflective access"
    r"|Please consider reporting this|Use --illegal-access=|All illegal access|A terminally deprecated method"
    r"|A restricted method|Use --enable-native-access=|Restricted methods will be blocked|sun\.misc\.Unsafe"
    r"|java\.lang\.System::|Unknown module: )"
    r"|(?:OpenJDK|Java HotSpot)[^:]{0,60} VM warning: |Picked up \w{0,40}JAVA\w{0,40}OPTIONS: "
    r"|SLF4J[:(]|log4j:(?:WARN|ERROR) "
    r"|:: (?:loading settings|resolving dependencies|resolution report|retrieving|problems summary) "
    r"|:: USE VERBOSE "
    r"|Ivy Default Cache set to: |The jars for the packages stored in: |downloading https?://"
    r"|\t(?:confs: \[|found \S+ in |\[SUCCESSFUL|-{5}|\|  |:: |\d+ artifacts copied)"
    r"|\S+ added as a dependency\Z|\[Stage \d+:"
)


def origin_of(document: Mapping[str, Any]) -> Origin:
    """The origin of a record with these fields."""
    stream = document.get("log.stream")
    if not stream:
        return Origin.ORCHESTRATOR
    if stream == "spark" or "log.logger" in document or document.get("event.dataset") == "spark.submit":
        return Origin.SPARK
    if stream == "stdout":
        return Origin.OUT
    text = str(document.get("message", ""))
    return Origin.SPARK if _NOTICE.match(text) or _LOG_LINE.match(text) else Origin.ERR


def level_of(document: Mapping[str, Any]) -> str:
    """The level of a record; a notice at the start of a JVM is no warning, whatever it is called."""
    if document.get("log.stream") == "stderr" and _NOTICE.match(str(document.get("message", ""))):
        return "info"
    return str(document.get("log.level", "")).lower()
