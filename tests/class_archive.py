"""A class archive for the drivers of tests: with it each starts in half of the processor time.

`python -m tests.class_archive` makes it before the tests, where it is absent: about a minute. Each version of
what makes archives has one of its own, so that the archive of an older version hides no mistake.
"""

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
from spark_runner.runners.launch import driver_environment
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_settings import SHORT_JOB_FLAGS, chosen_options, for_drivers
from tests.servers.cache import cache_folder
from tests.waiting import wait_until

# The compiler does half of the work of a short driver: 48 against 27 processor seconds for the example.
SUBMIT_OPTIONS = " ".join(SHORT_JOB_FLAGS)

_RUNNER = Path(__file__).parents[1] / "spark_runner"
_MAKERS = (
    *sorted((_RUNNER / "runners" / "class_archive").glob("*.py")),
    _RUNNER / "runners" / "spark_settings.py",
    _RUNNER / "runners" / "launch.py",
    _RUNNER / "driver" / "class_sample.py",
)
_NAME = "drivers"
_MAKE_S = 600
_MAX_UNUSED_S = 7 * 24 * 3600  # then the archive of another version goes


def use_archive() -> None:
    """Let all drivers that this process starts have the archive, if it is there; none is made meanwhile."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SUBMIT_OPTIONS)
    os.environ.setdefault("ORCHESTRATOR_CACHE_DIR", str(_folder()))
    is_there = any((_folder() / "class-archives").glob("*.json"))
    os.environ.setdefault("ORCHESTRATOR_CLASS_ARCHIVES", "true" if is_there else "false")


def archives() -> ClassArchives:
    """What finds the archive."""
    found = ClassArchives(_folder(), make=False)
    found.store = _store()
    return found


@cache  # one per process: it knows which archive it has summed up, and to do so takes 0.2 s
def _store() -> ArchiveStore:
    return ClassArchives(_folder(), make=False).store


@cache
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


def make_archive() -> Path | None:
    """Where it is; it is made, unless it is there. None where this host can have none."""
    made = ClassArchives(_folder(), is_idle=lambda _: True)
    found = _fit(made)
    # While another checkout makes it, this one waits.
    wait_until(lambda: made.store.find(found.key) or made.maker.try_to_make(found), _MAKE_S, "the archive")
    return made.store.find(found.key)


def _fit(found: ClassArchives) -> Fit:
    """Of drivers without options of their own, but for those that all short jobs have."""
    environment = _environment(found)
    fit = fit_of(environment, {}, SHORT_JOB_FLAGS, Path(environment["SPARK_CONF_DIR"]))
    assert fit is not None, "drivers of tests have no options that an archive cannot fit"
    return fit


def _forget_others() -> None:
    """Remove the archives of versions that nobody has used for long."""
    for folder in cache_folder().glob(f"{_NAME}*"):
        used = max((note.stat().st_mtime for note in folder.glob("class-archives/*.json")), default=0.0)
        if folder != _folder() and time.time() - used > _MAX_UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _environment(found: ClassArchives) -> dict[str, str]:
    request = SubmitRequest("none-1", "none", "", {})
    conf_dir = found.conf_dir(Path("/nowhere"))
    return driver_environment(request, RunDirectory(_folder()), conf_dir, for_drivers(()))


@cache
def _folder() -> Path:
    version = zlib.crc32(b"".join(path.read_bytes() for path in _MAKERS))
    return cache_folder() / f"{_NAME}-{version:08x}"


if __name__ == "__main__":
    print(make_archive() or "no archive: drivers start as they do without")  # noqa: T201 - for who runs it
    _forget_others()
