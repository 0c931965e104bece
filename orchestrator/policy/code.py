"""The sources of a job's code: packages, repositories, and files that Spark would fetch."""

import re

from orchestrator.models.definition import Definition
from orchestrator.models.spark import Spark
from orchestrator.policy.properties import FILE_LISTS, items
from orchestrator.policy.rules import PolicyRefused, Rules
from spark_runner.runners.base import backend_of

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
