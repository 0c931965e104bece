"""The options of a driver's JVM: those that a user has chosen, and those that a short job starts with."""

import re
import shlex
from collections.abc import Mapping, Sequence

LAUNCHER_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM of a few seconds.

The second compiler and G1 pay off after a minute of work; until then they only take processors from it.
"""

SHORT_JOB_FLAGS = (*LAUNCHER_FLAGS, "-XX:C1MaxInlineSize=12", "-XX:MetaspaceSize=256m")
"""And a driver compiles 12,000 methods for a few calls each: with less inlining in two thirds of the time.

Spark's classes and lambdas fill the default metaspace (21 MB) several times, each time for a full collection.
"""

COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC")
_LEVEL = re.compile(r"-XX:TieredStopAtLevel=|-XX:[+-]TieredCompilation|-Xint|-Xcomp")
_SETTINGS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
# Each of them is read by spark-class or by the JVM itself.
_VARIABLES = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")


def chosen_options(environment: Mapping[str, str], conf: Mapping[str, str]) -> list[str] | None:
    """Every option that the user gives to the JVM of a driver; None where they cannot be told apart."""
    given = [environment.get(name, "") for name in _VARIABLES] + [conf.get(name, "") for name in _SETTINGS]
    try:
        return [option for text in given for option in shlex.split(text)]
    except ValueError:  # a quotation mark without its partner
        return None


def quick_flags(flags: Sequence[str], chosen: Sequence[str] | None) -> list[str]:
    """Those of `flags` that leave the user's choice alone: with two collectors no JVM starts."""
    if chosen is None or any(COLLECTOR.match(option) or _LEVEL.match(option) for option in chosen):
        return []
    names = {option.partition("=")[0] for option in chosen}
    return [flag for flag in flags if flag.partition("=")[0] not in names]
