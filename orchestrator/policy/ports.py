"""What a definition may not open: ports of a driver on the worker's host, without a login or beyond loopback.

They are opened by settings alone. What the program of a job opens by itself, no setting prevents.
"""

import re
from collections.abc import Iterator, Mapping

from orchestrator.models.spark import Spark
from orchestrator.policy.patterns import matches
from spark_runner.runners.base import SparkTarget

_LOOPBACK = frozenset({"127.0.0.1", "localhost"})
_ON_THE_HOST = {
    "spark.ui.enabled": (frozenset({"false"}), "the pages of Spark have no login"),
    "spark.api.mode": (frozenset({"classic"}), "Spark Connect has no login"),
    "spark.remote": (frozenset(), "Spark Connect has no login"),
}
"""Of each driver that is a process of a worker's host: which values are allowed, and why no others."""

_WITH_LOCAL_MASTER = {
    "spark.driver.host": (_LOOPBACK, "the driver is for this host alone"),
    "spark.driver.bindAddress": (_LOOPBACK, "the driver is for this host alone"),
    "spark.authenticate": (frozenset({"true"}), "each user of the host reaches the ports of the driver"),
    "spark.authenticate.*": (frozenset(), "each user of the host reaches the ports of the driver"),
    "spark.network.crypto.*": (frozenset({"true"}), "each user of the host reaches the ports of the driver"),
}
"""Likewise, where nobody but this host needs its ports."""

_PLUGINS = ("spark.plugins", "spark.plugins.defaultList")
_CONNECT = re.compile(r"\borg\.apache\.spark\.sql\.connect\.|\$\{")  # Spark fills in references
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
_QUOTES = str.maketrans("", "", "\"'\\")
# Remote management and debuggers; settings of Spark, which go past the names above; files of further options.
_OPENING = re.compile(
    r"-Dcom\.sun\.management|-Dspark\.|-agent(?:lib|path):|-Xrun|-XX:(?:Flags|VMOptionsFile)|(?:^|[\x00-\x20])@"
)


def openings(own: Spark, filled: Spark | None) -> Iterator[tuple[str, str]]:
    """The settings of a definition that open ports, and why that is not for a definition to say.

    `filled`: with what the worker fills in; without it, only what it cannot change is looked at.
    """
    target = (filled or own).target
    if filled is None and not own.master:
        target = SparkTarget("", own.deploy_mode or "cluster")
    if target.deploy_mode != "client":
        return
    rules = dict(_ON_THE_HOST)
    if target.backend == "local":
        rules |= _WITH_LOCAL_MASTER
    yield from _of_rules(own.conf, rules)
    for name in _PLUGINS:
        if _CONNECT.search(own.conf.get(name, "")):
            yield name, "Spark Connect has no login"
    for name in _JAVA_OPTIONS:
        if found := _OPENING.search(own.conf.get(name, "").translate(_QUOTES)):
            yield name, f"{found[0].strip()} lets others into the JVM, or sets what has a name of its own"


def _of_rules(
    conf: Mapping[str, str], rules: Mapping[str, tuple[frozenset[str], str]]
) -> Iterator[tuple[str, str]]:
    for name, value in conf.items():
        for pattern, (allowed, reason) in rules.items():
            if matches(pattern, name) and value.strip().lower() not in allowed:
                yield name, reason
