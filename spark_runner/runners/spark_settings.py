"""Settings of a driver: Java properties files, options of its JVM, and the allow-list of its environment.

A program and each process that it starts can read all of it.
"""

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_SPECIAL = frozenset(" =:#!")  # separators and comment signs
_BIGGEST_UNIT = 0xFFFF

PAGES_OFF = {
    "spark.ui.enabled": "false",  # it costs a port and a second of start-up, for few users
    "spark.ui.killEnabled": "false",  # where it is on it has no login: whoever sees it could end stages
}
"""The defaults of Spark's pages in each driver; a job or the settings of its pool may turn them on."""

MEMORY_MEASURES = {
    "spark.executor.processTreeMetrics.enabled": "true",  # else the memory of Python workers is unknown
    # Else an executor looks with each heartbeat only (10 s). A look takes 3.4 ms of processor time, where 114
    # processes run: 0.34 % of one processor.
    "spark.executor.metrics.pollingInterval": "1s",
}
"""With which executors on clusters measure themselves; the user's own settings win."""

# The driver measures the memory of its processes itself. What is left to Spark takes 0.2 ms of processor time
# at most, so it can be measured more often than on clusters: many local runs take seconds only.
LOCAL_MEASURES = {"spark.executor.metrics.pollingInterval": "200ms"}
"""With which a local master measures its heap, and what Spark's memory manager gives out; likewise."""


def render_properties(properties: Mapping[str, str]) -> str:
    """The text of a file from which `java.util.Properties.load` reads exactly these pairs.

    Spark itself then strips blanks and tabs (not line ends) from both ends of every value.
    """
    return "".join(f"{_escape(key)}={_escape(value)}\n" for key, value in properties.items())


def _escape(text: str) -> str:
    return "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character in _SPECIAL:
        return "\\" + character
    if character.isascii() and character.isprintable():
        return character
    code = ord(character)
    if code <= _BIGGEST_UNIT:
        return f"\\u{code:04x}"
    units = character.encode("utf-16-be")  # a surrogate pair, as Java requires
    return f"\\u{units[:2].hex()}\\u{units[2:].hex()}"


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


_NAMES = frozenset(
    {
        # the basics of a process: programs, the user's settings, temporary files, the local time
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "TZ",
        "LANG",
        "LANGUAGE",
        # the locations of Java, Spark and Python, and the operator's options for them
        "JAVA_HOME",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "LD_LIBRARY_PATH",  # some builds of Python and of Hadoop do not start without it
        "PYTHONPATH",
        "PYTHONUTF8",
        "SPARK_DIST_CLASSPATH",
        "SPARK_HOME",
        "SPARK_LAUNCHER_OPTS",
        "SPARK_LOCAL_IP",
        "SPARK_SUBMIT_OPTS",
        # file systems and clusters: addresses, and the driver's Kerberos ticket
        "HADOOP_CONF_DIR",
        "HADOOP_HOME",
        "HADOOP_USER_NAME",
        "YARN_CONF_DIR",
        "KRB5_CONFIG",
        "KRB5CCNAME",
        # the trusted certificates
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    }
)
_LOCALE = "LC_"  # LC_ALL, LC_CTYPE ...
# A spark-submit that submits a driver to a cluster acts for the worker.
_OF_THE_WORKER = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KRB5_KTNAME")


def for_drivers(more: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of an environment that a driver gets; the operator adds the names in `more`."""
    names = _NAMES.union(more)
    return {name: value for name, value in environment.items() if name in names or name.startswith(_LOCALE)}


def for_cluster_submit(more: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of an environment for a spark-submit that only submits a driver to a cluster."""
    return for_drivers((*more, *_OF_THE_WORKER), environment)
