"""Files of the worker's host that a definition sends to a cluster: the worker reads them as its own user.

A driver on the worker's host reads its files as the user of the driver, so this module does not check them.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator.model.definition import Definition
from orchestrator.policy.rules import FILE_LISTS, PolicyRefused, Rules, items, matches, matches_any, reserved
from queues import is_replaceable
from spark_runner.runners.base import SparkTarget

_LISTS = (
    *FILE_LISTS,
    *("spark.kerberos.keytab", "spark.yarn.keytab", "spark.kubernetes.kerberos.krb5.path"),
    *("spark.metrics.conf", "spark.kubernetes.file.upload.path", "spark.yarn.stagingDir"),
)
"""Properties that name files that spark-submit reads, or a folder that it writes to."""

_CODE_OF_THE_WORKER = (
    *("spark.jars.ivySettings", "spark.jars.ivy", "spark.driver.defaultExtraClassPath"),
    *("spark.hadoop.hadoop.security.*", "spark.hadoop.hadoop.kerberos.*"),
)
"""Properties that make spark-submit itself run code or programs, before any driver starts."""

_FILE_SYSTEMS = ("spark.hadoop.fs.viewfs.*", "spark.hadoop.fs.*.impl")
"""Properties that can map addresses of another scheme to files of this host."""

_TO_FILES = frozenset({"viewfs", "har"})  # schemes of Hadoop that can map to local files by themselves
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_UNCLEAR = re.compile(r"[*?\[\]{}\\%]")  # a pattern for several files, or a name that Spark decodes


class Unclear(ValueError):
    """The name may mean more than one file."""


def check_files(rules: Rules, definition: Definition, target: SparkTarget, *, runs_as: bool) -> None:
    """Raise PolicyRefused for a file that a job in cluster mode may not use.

    `runs_as`: the pool has its own user. A spark-submit for YARN then runs as that user, too, and reads
    what the user may read.
    """
    setting, listed = rules.find("files")
    if target.deploy_mode != "cluster":
        return
    is_asked = listed is not None or (runs_as and target.backend != "yarn")
    if is_asked or target.backend == "kubernetes":
        _refuse(definition, _CODE_OF_THE_WORKER, "it sets the programs that the worker itself runs")
    if not is_asked:
        return
    _refuse(definition, _FILE_SYSTEMS, "it sets which files addresses mean")
    for name, directory in _named_files(definition):
        try:
            path = of_this_host(name, directory)
        except Unclear as error:
            raise PolicyRefused(f"the file {name!r} is refused in pool {rules.pool}: {error}") from None
        if path is None or (is_for_all(path) if listed is None else is_listed(listed, path)):
            continue
        allowed = ("files that every user of the host may read",) if listed is None else listed
        raise rules.refusal(setting, allowed, f"the file {name!r}")


def _refuse(definition: Definition, patterns: Sequence[str], reason: str) -> None:
    for name in definition.spark.conf:
        if any(matches(pattern, name) for pattern in patterns):
            raise reserved(name, reason)


def _named_files(definition: Definition) -> Iterator[tuple[str, str]]:
    """The files that a definition names, on any host, each with the folder of relative names, if any."""
    own = definition.spark
    for name in filter(None, (*own.jars, *own.py_files, *own.files, definition.jar)):
        yield name, definition.directory or "/"
    named = (own.kubernetes.pod_template, own.standalone.staging, *items(own.conf, *_LISTS))
    for name in filter(None, named):
        yield name, ""


def of_this_host(name: str, directory: str) -> Path | None:
    """The file of this host that the name means; None for a file elsewhere. Raises Unclear."""
    path = name.partition("#")[0]  # for example archive.zip#environment
    if parts := _SCHEME.fullmatch(path):
        if (scheme := parts[1].lower()) in _TO_FILES:
            raise Unclear(f"{scheme}: may lead to any file")
        if scheme != "file":
            return None
        path = parts[2]
        if path.startswith("//") and not path.startswith("///"):
            raise Unclear("write file:///")
        path = f"/{path.lstrip('/')}"
    if _UNCLEAR.search(path):
        raise Unclear(r"none of * ? [ ] { } \ % may be in its name")
    full = Path(directory, path)
    if not full.is_absolute() or ".." in full.parts:
        raise Unclear("write the whole path, without `..`")
    return full


def is_listed(patterns: Sequence[str], path: Path) -> bool:
    """Whether the list includes the file and, if it is a link, also its target."""
    return matches_any(patterns, str(path)) and matches_any(patterns, str(path.resolve()))


def is_for_all(path: Path) -> bool:
    """Whether every user of this host may read a file that only root and this user can replace."""
    try:
        real = path.resolve(strict=True)
        found = real.stat()
    except OSError:
        return False
    return (
        stat.S_ISREG(found.st_mode)
        and found.st_uid in {0, os.geteuid()}
        and bool(found.st_mode & stat.S_IROTH)
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and all(parent.stat().st_mode & stat.S_IXOTH for parent in real.parents)
        and not is_replaceable(path)
    )
