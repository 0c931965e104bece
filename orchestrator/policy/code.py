"""From where the code of a job comes: packages, repositories, and files that Spark would fetch."""

import re
from collections.abc import Iterator, Mapping

from orchestrator.models.definition import Definition
from orchestrator.policy.rules import Refused, Rules

_REMOTE = re.compile(r"(?!(?:file|local):)[A-Za-z][A-Za-z0-9+.-]*:")
_FILE_LISTS = (
    *("spark.jars", "spark.files", "spark.submit.pyFiles", "spark.archives"),
    *("spark.yarn.jars", "spark.yarn.archive"),
    *("spark.yarn.dist.jars", "spark.yarn.dist.files", "spark.yarn.dist.archives", "spark.yarn.dist.pyFiles"),
    *("spark.driver.extraClassPath", "spark.executor.extraClassPath"),
)
_PAST_PACKAGES = (
    *("spark.jars.ivySettings", "spark.jars.ivy", "spark.plugins"),
    *("spark.sql.hive.metastore.jars", "spark.sql.hive.metastore.jars.path"),
    "spark.sql.maven.additionalRemoteRepositories",
    *("spark.driver.extraClassPath", "spark.executor.extraClassPath"),
)
_QUOTES = str.maketrans("", "", "\"'\\")  # that spark-submit takes out of Java's options
_JAVA_OPTIONS = re.compile(r"spark\.(?:driver|executor)\.(?:extra|default)JavaOptions")


def check_code(rules: Rules, definition: Definition) -> None:
    """Packages, repositories, and files that Spark would fetch.

    With a list of packages nothing comes from elsewhere, unless a list of repositories says so.
    """
    own = definition.spark
    conf = own.conf
    setting, packages = rules.find("packages")
    for package in (*own.packages, *_items(conf, "spark.jars.packages")):
        rules.allow("packages", package, f"the package {package!r}")
    is_closed = packages is not None
    for repository in _items(conf, "spark.jars.repositories"):
        rules.allow("repositories", repository, f"the repository {repository!r}", is_open=not is_closed)
    listed = (*own.jars, *own.py_files, *own.files, definition.jar)
    for name in (*filter(None, listed), *(item for key in _FILE_LISTS for item in _items(conf, key))):
        if _REMOTE.match(name):
            rules.allow("repositories", name, f"the file {name!r}", is_open=not is_closed)
    is_guarded = is_closed or rules.find("repositories")[1] is not None
    if not is_guarded:
        return
    setting = setting if is_closed else rules.find("repositories")[0]
    for name, value in conf.items():
        if name in _PAST_PACKAGES or (
            _JAVA_OPTIONS.fullmatch(name) and "-Dspark." in value.translate(_QUOTES)
        ):
            raise Refused(
                f"`conf` of a definition cannot set {name} in pool {rules.pool}: it brings code past the "
                f"setting {setting}. An operator can set it in the setting `spark` of the pool"
            )


def _items(conf: Mapping[str, str], name: str) -> Iterator[str]:
    return filter(None, map(str.strip, conf.get(name, "").split(",")))
