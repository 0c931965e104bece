"""A class archive for the drivers of tests: with it each starts in half of the processor time.

`python -m tests.class_archive` makes it before the tests, where it is not there yet: 20 s.
"""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.class_archive.fit import fit_of
from spark_runner.runners.java_flags import SHORT_JOB_FLAGS, chosen_options
from spark_runner.runners.launch import driver_environment
from spark_runner.runners.run_directory import RunDirectory
from tests.servers.cache import cache_folder

# The compiler does half of the work of a short driver: 48 against 27 processor seconds for the example.
SUBMIT_OPTIONS = " ".join(SHORT_JOB_FLAGS)


def use_archive() -> None:
    """Let all drivers that this process starts have the archive, if it is there; none is made meanwhile."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SUBMIT_OPTIONS)
    os.environ.setdefault("ORCHESTRATOR_CACHE_DIR", str(_folder()))
    is_there = any((_folder() / "class-archives").glob("*.json"))
    os.environ.setdefault("ORCHESTRATOR_CLASS_ARCHIVES", "true" if is_there else "false")


def archives() -> ClassArchives:
    """What finds the archive."""
    return ClassArchives(_folder(), make=False)


@cache  # a look at the archive reads all of it
def session_environment() -> Mapping[str, str]:
    """What lets a Spark session of this very process have the archive; empty where it is not there."""
    environment = _environment(archives())
    options = archives().options(RunDirectory(_folder()), environment, {}, chosen_options(environment, {}))
    if not options:
        return {}
    return {
        "SPARK_CONF_DIR": environment["SPARK_CONF_DIR"],
        "SPARK_SUBMIT_OPTS": " ".join([os.environ["SPARK_SUBMIT_OPTS"], *options]),
    }


def node_environment() -> Mapping[str, str]:
    """What lets all JVMs of a node of a cluster have the archive; empty where it is not there."""
    found = session_environment()
    if not found:
        return {}
    return {"SPARK_CONF_DIR": found["SPARK_CONF_DIR"], "JDK_JAVA_OPTIONS": found["SPARK_SUBMIT_OPTS"]}


def make_archive() -> None:
    """Make it, unless it is there."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SUBMIT_OPTIONS)
    made = ClassArchives(_folder(), is_idle=lambda _: True)
    environment = _environment(made)
    fit = fit_of(environment, {}, chosen_options(environment, {}), Path(environment["SPARK_CONF_DIR"]))
    assert fit is not None, "drivers of tests have no options that an archive cannot fit"
    while not made.maker.try_to_make(fit):
        pass  # another checkout makes it
    print(made.store.find(fit.key) or "no archive: drivers start as they do without")  # noqa: T201 - for who runs it


def _environment(found: ClassArchives) -> dict[str, str]:
    request = SubmitRequest("none-1", "none", "", {})
    return driver_environment(request, RunDirectory(_folder()), found.conf_dir(Path("/nowhere")))


def _folder() -> Path:
    return cache_folder() / "drivers"


if __name__ == "__main__":
    make_archive()
