"""Checks of code, ports and variables of the environment against the rules of a pool.

Only the settings of the operator may. No check prevents ports that the program of a job opens by itself.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from orchestrator.config.tables import ALL_POOLS
from orchestrator.model.definition import Definition
from orchestrator.model.spark import Spark
from orchestrator.policy.rules import (
    FILE_LISTS,
    PolicyRefused,
    Rules,
    items,
    matches,
    setting_name,
)
from spark_runner.references.reference import Reference
from spark_runner.runners.base import SparkTarget, backend_of

_REMOTE = re.compile(
    r"(?!(?:file|local):)[A-Za-z][A-Za-z0-9+.-]*:|.*\$\{"
)  # also references that Spark fills in
_CLASS_PATHS = tuple(
    f"spark.{part}.{name}"
    for part in ("driver", "executor")
    for name in ("extraClassPath", "defaultExtraClassPath")
)
_FILE_LISTS = (*FILE_LISTS, *_CLASS_PATHS)
_PAST_PACKAGES = (
    *("spark.jars.ivySettings", "spark.jars.ivy", "spark.plugins", "spark.repl.class.uri"),
    *("spark.sql.hive.metastore.jars", "spark.sql.hive.metastore.jars.path"),
    "spark.sql.maven.additionalRemoteRepositories",
    *_CLASS_PATHS,
)
_QUOTES = str.maketrans("", "", "\"'\\")  # spark-submit removes them from Java's options
_JAVA_OPTIONS = re.compile(r"spark\.(?:driver|executor)\.(?:extra|default)JavaOptions")
_SETS_SPARK = re.compile(r"-Dspark\.|\$\{")


def check_code(rules: Rules, definition: Definition, filled: Spark | None) -> None:
    """Raise PolicyRefused for packages, repositories and remote files that the policy does not allow.

    With a list of packages no code may come from other places, unless a list of repositories allows them. On
    Kubernetes packages are on the class path of the worker's own spark-submit, with its credentials, so
    without lists none is allowed.
    """
    own = definition.spark
    conf = own.conf
    setting, packages = rules.find("packages")
    is_closed = packages is not None
    is_open = not (is_closed or backend_of((filled or own).master) == "kubernetes")
    for package in (*own.packages, *items(conf, "spark.jars.packages")):
        rules.allow("packages", package, f"the package {package!r}", is_open=is_open)
    for repository in items(conf, "spark.jars.repositories"):
        rules.allow("repositories", repository, f"the repository {repository!r}", is_open=is_open)
    listed = (*own.jars, *own.py_files, *own.files, definition.jar)
    for name in (*filter(None, listed), *items(conf, *_FILE_LISTS)):
        if _REMOTE.match(name):
            rules.allow("repositories", name, f"the file {name!r}", is_open=not is_closed)
    is_guarded = is_closed or rules.find("repositories")[1] is not None
    if not is_guarded:
        return
    setting = setting if is_closed else rules.find("repositories")[0]
    for name, value in conf.items():
        if name in _PAST_PACKAGES or (
            _JAVA_OPTIONS.fullmatch(name) and _SETS_SPARK.search(value.translate(_QUOTES))
        ):
            raise PolicyRefused(
                f"`conf` of a definition cannot set {name} in pool {rules.pool}: it loads code that "
                f"the setting {setting} does not control. "
                "An operator can set it in the setting `spark` of the pool"
            )


_LOOPBACK = frozenset({"127.0.0.1", "localhost"})
_ON_THE_HOST = {
    "spark.ui.enabled": (frozenset({"false"}), "the web UI of Spark has no login"),
    "spark.ui.killEnabled": (frozenset({"false"}), "the web UI of Spark has no login"),
    "spark.ui.filters": (frozenset(), "a filter of the pool may be the login of the web UI"),
    "spark.acls.enable": (frozenset({"true"}), "the ACLs of the pool may protect the web UI"),
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
_PORT_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
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
    for name in _PORT_JAVA_OPTIONS:
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


_REFERENCE = re.compile(r"\$\{env[:.](\w{0,200})")  # with a dot Hadoop fills it in
_NESTED_REFERENCE = re.compile(
    r"\$\{[^}$]{0,200}\$(?:\{[^}]{0,50}\})?"
)  # Hadoop fills in the inner reference first
_SET_VARIABLE = re.compile(
    r"spark\.(?:executorEnv|kubernetes\.driverEnv|yarn\.appMasterEnv|kubernetes\.(?:driver|executor)\.secretKeyRef)"
    r"\.(.+)"
)
_VARIABLE = r"\$\{env:\w+\}"
_WHOLE_HOST = re.compile(rf"{_VARIABLE}(?::(?:[0-9]+|{_VARIABLE}))?")


def check_variables(rules: Rules, definition: Definition) -> None:
    """Check each variable that a definition refers to, or sets for drivers and executors."""
    texts = (
        *(definition.callback.url, definition.jar, *definition.arguments),
        *definition.variables.values(),
        *_texts(definition.spark.model_dump(exclude_defaults=True)),  # no default refers to a variable
    )
    setting, listed = rules.find("environment")
    for text in texts if listed is not None else ():
        if nested := _NESTED_REFERENCE.search(text):
            raise rules.refusal(setting, listed or (), f"the nested reference {nested[0]!r}")
    is_set = {match[1] for key in definition.spark.conf if (match := _SET_VARIABLE.fullmatch(key))}
    check_named(rules, (definition.script, *texts), is_set)


def check_named(rules: Rules, texts: Iterable[str], others: Iterable[str] = ()) -> None:
    """Check each variable that one of the texts refers to, and these others."""
    names = {match[1] for text in texts for match in _REFERENCE.finditer(text)}.union(others)
    for name in sorted(names):
        rules.allow("environment", name, f"the environment variable {name!r}")


def check_references(rules: Rules, references: Iterable[Reference]) -> None:
    """Check each reference in a plan; those of connections are not in the definition."""
    for reference in references:
        if reference.kind == "env":
            rules.allow("environment", reference.name, f"the environment variable {reference.name!r}")
        else:
            rules.allow("secrets", reference.name, f"the secret {reference.name!r}")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def check_receiver(rules: Rules, url: str) -> None:
    """Check a receiver whose host the definition names; a host from a variable is checked at the call.

    The worker sends its variables to no host that a definition chooses, unless the operator lists the host or
    the variable. That includes the host name itself: a name server would get it.
    """
    if not url:
        return
    _, has_scheme, rest = url.partition("://") if url.startswith("http") else ("", "", url)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2] if has_scheme else authority
    if _WHOLE_HOST.fullmatch(host):
        return
    lists = (rules.find("callback_hosts")[1], rules.find("environment")[1])
    if (named := _REFERENCE.search(url)) and lists == (None, None):
        raise PolicyRefused(
            f"the callback would send the worker's variable {named[1]!r} to {host}: an operator can list the "
            f"host in the setting {setting_name(ALL_POOLS, 'callback_hosts')}, or the variable in "
            f"{setting_name(ALL_POOLS, 'environment')}; or the variable can hold the whole address"
        )
    if _REFERENCE.search(host):
        return
    try:
        parts = urlsplit(_REFERENCE.sub("", url))
        name, port = parts.hostname, parts.port
    except ValueError:
        raise PolicyRefused("the URL of the callback cannot be read") from None
    if name:
        rules.check_host(name, port or (443 if parts.scheme == "https" else 80))
