"""Ports of drivers on the worker's host: a definition may not open one without a login or beyond loopback.

Only the settings of the operator may. No check prevents ports that the program of a job opens by itself.
"""

import re
from collections.abc import Iterator, Mapping

from orchestrator.models.spark import Spark
from orchestrator.policy.patterns import matches
from spark_runner.runners.base import SparkTarget

_LOOPBACK = frozenset({"127.0.0.1", "localhost"})
_ON_THE_HOST = {
    "spark.ui.enabled": (frozenset({"false"}), "the web UI of Spark has no login"),
    "spark.api.mode": (frozenset({"classic"}), "Spark Connect has no login"),
    "spark.remote": (frozenset(), "Spark Connect has no login"),
}
"""For each driver on the worker's host: the allowed values, and why no others are."""

_WITH_LOCAL_MASTER = {
    "spark.driver.host": (_LOOPBACK, "only this host may reach the driver"),
    "spark.driver.bindAddress": (_LOOPBACK, "only this host may reach the driver"),
    "spark.authenticate": (frozenset({"true"}), "every user of the host can reach the ports of the driver"),
    "spark.authenticate.*": (frozenset(), "every user of the host can reach the ports of the driver"),
    "spark.network.crypto.*": (
        frozenset({"true"}),
        "every user of the host can reach the ports of the driver",
    ),
}
"""The same for a driver with a local master, whose ports no other host needs."""

_PLUGINS = ("spark.plugins", "spark.plugins.defaultList")
_CONNECT = re.compile(r"\borg\.apache\.spark\.sql\.connect\.|\$\{")  # Spark fills in references
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
_QUOTES = str.maketrans("", "", "\"'\\")
# Remote management, debuggers, settings of Spark that bypass the names above, files with further options.
_OPENING = re.compile(
    r"-Dcom\.sun\.management|-Dspark\.|-agent(?:lib|path):|-Xrun|-XX:(?:Flags|VMOptionsFile)|(?:^|[\x00-\x20])@"
)


def openings(own: Spark, filled: Spark | None) -> Iterator[tuple[str, str]]:
    """The settings of a definition that open ports, each with the reason of its refusal.

    `filled`: the Spark part with the values that the worker fills in. Without it, only settings that the
    worker cannot change are checked.
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
            yield (
                name,
                f"{found[0].strip()} opens the JVM to other users, or sets a property past its own name",
            )


def _of_rules(
    conf: Mapping[str, str], rules: Mapping[str, tuple[frozenset[str], str]]
) -> Iterator[tuple[str, str]]:
    for name, value in conf.items():
        for pattern, (allowed, reason) in rules.items():
            if matches(pattern, name) and value.strip().lower() not in allowed:
                yield name, reason
