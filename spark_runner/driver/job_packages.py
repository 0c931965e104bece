"""The packages of `requirements` on the Python path of a driver, and of the processes that it starts."""

import fcntl
import importlib
import os
import sys
import sysconfig
from pathlib import Path

from pyspark import SparkFiles

from spark_runner.protocol.errors import PackagesUnusable, RefusedAtStart
from spark_runner.protocol.run_plan import PlannedPackages

_VARIABLE = "PYTHONPATH"


def use_packages(packages: PlannedPackages) -> None:
    """Put the packages first on the path, before the modules of Python's own packages.

    Raises PackagesUnusable for those of another Python or platform, RefusedAtStart where they are missing.
    """
    here = f"{sys.version_info[0]}.{sys.version_info[1]}", sysconfig.get_platform()
    if packages.compiled and here != (packages.python, packages.platform):
        raise PackagesUnusable(
            f"the packages of `requirements` were installed for Python {packages.python} on"
            f" {packages.platform}, as the worker's pool has it, and this driver runs Python {here[0]} on"
            f" {here[1]}: the cluster needs the same, or the packages belong in its image"
        )
    folder = _found(packages.folder)
    _hold(folder)
    sys.path.insert(0, str(folder))
    # Processes that the program starts with sys.executable find them too.
    os.environ[_VARIABLE] = os.pathsep.join(filter(None, (str(folder), os.environ.get(_VARIABLE, ""))))
    importlib.invalidate_caches()


def _found(folder: str) -> Path:
    """The folder on this host: YARN and pods unpack an archive in the working directory, others beside it."""
    named = (Path(folder), Path(SparkFiles.get(folder)))
    for path in named:
        if path.is_dir():
            return path.absolute()
    raise RefusedAtStart(  # another submission installs them again
        f"the packages of `requirements` are missing in this driver: there is no folder {named[0].absolute()}"
    )


def _hold(folder: Path) -> None:
    """Keep workers from removing the folder while this process runs."""
    try:
        lock = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # an unpacked archive has no lock; the kernel releases the others at the end
        return
