"""Class archives for the drivers of tests: they halve the processor time of their start.

`python -m tests.class_archive` makes those that are missing before the tests, in about a minute for each line
of Spark. Each version of the code that makes archives has its own, so that an older archive hides no error.
"""

import logging
import os
import shutil
import time
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.class_archive.store import ArchiveStore, Fit, fit_of
from spark_runner.runners.installation import SparkInstallation, find_installation
from spark_runner.runners.launch import driver_environment
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_settings import SHORT_JOB_FLAGS, chosen_options, for_drivers
from tests.servers.cache import cache_folder
from tests.waiting import wait_until

# The compiler takes half of the time of a short driver: 48 against 27 processor seconds for the example.
SUBMIT_OPTIONS = " ".join(SHORT_JOB_FLAGS)

_RUNNER = Path(__file__).parents[1] / "spark_runner"
_MAKERS = (
    *sorted((_RUNNER / "runners" / "class_archive").glob("*.py")),
    _RUNNER / "runners" / "spark_settings.py",
    _RUNNER / "runners" / "launch.py",
    _RUNNER / "driver" / "class_sample.py",
    _RUNNER / "sql" / "sample.py",
)
_NAME = "drivers"
_MAKE_S = 600
_MAX_UNUSED_S = 7 * 24 * 3600  # then the archive of another version is removed


def use_archive() -> None:
    """Give all drivers of this process the archive, if it exists; none is made during the tests."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SUBMIT_OPTIONS)
    os.environ.setdefault("ORCHESTRATOR_CACHE_DIR", str(_folder()))
    is_there = any((_folder() / "class-archives").glob("*.json"))
    os.environ.setdefault("ORCHESTRATOR_CLASS_ARCHIVES", "true" if is_there else "false")


def archives() -> ClassArchives:
    """The lookup of the archive."""
    found = ClassArchives(_folder(), make=False)
    found.store = _store()
    return found


@cache  # one per process: it caches the checksum of the archive, which takes 0.2 s
def _store() -> ArchiveStore:
    return ClassArchives(_folder(), make=False).store


@cache
def session_environment() -> Mapping[str, str]:
    """Environment for a Spark session in this process to use the archive; empty if there is none."""
    environment = _environment(archives())
    options = archives().options(RunDirectory(_folder()), environment, {}, chosen_options(environment, {}))
    if not options:
        return {}
    return {
        "SPARK_CONF_DIR": environment["SPARK_CONF_DIR"],
        "SPARK_SUBMIT_OPTS": " ".join([os.environ["SPARK_SUBMIT_OPTS"], *options]),
    }


def node_environment() -> Mapping[str, str]:
    """Environment for all JVMs of a cluster node to use the archive; empty if there is none."""
    found = session_environment()
    if not found:
        return {}
    return {"SPARK_CONF_DIR": found["SPARK_CONF_DIR"], "JDK_JAVA_OPTIONS": found["SPARK_SUBMIT_OPTS"]}


def make_archive(spark: SparkInstallation | None = None) -> Path | None:
    """Path of the archive of a Spark, made if it is missing; None if this host supports none."""
    made = ClassArchives(_folder(), is_idle=lambda _: True)
    found = _fit(made, spark)
    # Wait while another checkout makes it.
    wait_until(lambda: made.store.find(found.key) or made.maker.try_to_make(found), _MAKE_S, "the archive")
    return made.store.find(found.key)


def archive_of(spark: SparkInstallation) -> Path | None:
    """Path of the archive of a Spark; None if it was not made."""
    found = archives()
    return found.store.find(_fit(found, spark).key)


def _fit(found: ClassArchives, spark: SparkInstallation | None = None) -> Fit:
    """The fit for drivers with no options but those of all short jobs."""
    environment = _environment(found, spark)
    fit = fit_of(environment, {}, SHORT_JOB_FLAGS, Path(environment["SPARK_CONF_DIR"]))
    assert fit is not None, "an archive fits the options of drivers of tests"
    return fit


def _forget_others() -> None:
    """Remove the archives of other versions that were unused for long."""
    for folder in cache_folder().glob(f"{_NAME}*"):
        used = max((note.stat().st_mtime for note in folder.glob("class-archives/*.json")), default=0.0)
        if folder != _folder() and time.time() - used > _MAX_UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _environment(found: ClassArchives, spark: SparkInstallation | None = None) -> dict[str, str]:
    request = SubmitRequest("none-1", "none", "", {}, spark=spark)
    conf_dir = found.conf_dir(Path("/nowhere"))
    return driver_environment(request, RunDirectory(_folder()), conf_dir, for_drivers(()))


@cache
def _folder() -> Path:
    version = zlib.crc32(b"".join(path.read_bytes() for path in _MAKERS))
    return cache_folder() / f"{_NAME}-{version:08x}"


if __name__ == "__main__":
    from tests.servers.spark_lines import environments  # it loads fixtures, which pytest must load first

    logging.basicConfig(level=logging.INFO)  # says why there is no archive
    for each in (None, *map(find_installation, environments())):
        print(make_archive(each) or "no archive: drivers start as they do without")  # noqa: T201 - the output of the program
    _forget_others()
