"""The options of a driver's JVM: those that a user has chosen, and those for short jobs."""

import re
import shlex
from collections.abc import Mapping, Sequence

LAUNCHER_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM of a few seconds.

The second compiler and G1 pay off after a minute of work; until then they only take processor time from it.
"""

SHORT_JOB_FLAGS = (*LAUNCHER_FLAGS, "-XX:C1MaxInlineSize=12", "-XX:MetaspaceSize=256m")
"""For the driver of a short job.

A driver compiles 12,000 methods for a few calls each; with less inlining this takes two thirds of the time.
Spark's classes and lambdas fill the default metaspace (21 MB) several times, each with a full collection.
"""

COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC")
_LEVEL = re.compile(r"-XX:TieredStopAtLevel=|-XX:[+-]TieredCompilation|-Xint|-Xcomp")
_SETTINGS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
# spark-class or the JVM itself reads each of them.
_VARIABLES = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")


def chosen_options(environment: Mapping[str, str], conf: Mapping[str, str]) -> list[str] | None:
    """Every option that the user gives to the JVM of a driver; None if they cannot be parsed."""
    given = [environment.get(name, "") for name in _VARIABLES] + [conf.get(name, "") for name in _SETTINGS]
    try:
        return [option for text in given for option in shlex.split(text)]
    except ValueError:  # an unbalanced quotation mark
        return None


def quick_flags(flags: Sequence[str], chosen: Sequence[str] | None) -> list[str]:
    """The `flags` that do not conflict with the user's options: a JVM with two collectors does not start."""
    if chosen is None or any(COLLECTOR.match(option) or _LEVEL.match(option) for option in chosen):
        return []
    names = {option.partition("=")[0] for option in chosen}
    return [flag for flag in flags if flag.partition("=")[0] not in names]
