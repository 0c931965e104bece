"""A Spark on this host that an operator names for a pool: a distribution, or a Python in which pyspark is."""

import importlib.util
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.text import shortened

OLDEST_LINE, NEWEST_LINE = (4, 0), (4, 3)
"""The lines of Spark that are supported: pyproject.toml has the same range."""

_OLDEST_PYTHON = (3, 11)  # of the code that runs in drivers
_CORE = re.compile(r"spark-core_[0-9.]+-(([0-9]+)\.([0-9]+)\S*)\.jar")
_LOOK_SECONDS = 30.0  # a Python starts within 0.1 s; the disk may be a network's
_MAX_QUOTED_CHARACTERS = 300
# Its pyspark is found and not imported, which would take half a second.
_LOOK = """
import importlib.util, json, sys
found = importlib.util.find_spec("pyspark")
print(json.dumps([sys.version_info[:2], found.origin if found else ""]))
"""


class SparkUnusable(SparkRunnerError):
    """The folder that an operator set for Spark contains no Spark, or one that is not supported."""


@dataclass(frozen=True, slots=True)
class SparkInstallation:
    """A Spark on this host."""

    home: str  # for SPARK_HOME
    version: str  # of its jars; empty = unknown
    python: str = ""  # of its drivers and their Python workers; empty = the Python of the worker


def find_installation(folder: Path) -> SparkInstallation:
    """The Spark in a folder; starts the Python of a Python environment. Raises SparkUnusable."""
    if not folder.is_absolute():
        raise SparkUnusable(f"{folder} is not an absolute path")
    if not folder.is_dir():
        raise SparkUnusable(f"{folder} is not a folder on this host")
    folder = folder.resolve()  # a link may name another version tomorrow, while JVMs of this one run
    if (folder / "jars").is_dir():
        return _checked(folder, "")
    python = folder / "bin" / "python"  # its path and not its target: a link marks a virtual environment
    if not python.exists():
        raise SparkUnusable(
            f"{folder} is neither a Spark distribution, which has jars/ and bin/spark-submit, nor a Python "
            "environment, which has bin/python"
        )
    version, origin = _look_into(python)
    if version < _OLDEST_PYTHON:
        raise SparkUnusable(f"{python} is Python {_dotted(version)}; drivers need {_dotted(_OLDEST_PYTHON)}")
    if not origin:
        raise SparkUnusable(f"{python} has no pyspark: `{python} -m pip install pyspark` with a version")
    return _checked(Path(origin).parent, str(python))


def own_installation() -> SparkInstallation | None:
    """The Spark of this process: that of SPARK_HOME, else the installed pyspark; None without one."""
    home = Path(named) if (named := os.environ.get("SPARK_HOME")) else installed_spark_home()
    if home is None:
        return None
    found = _core_of(home)
    return SparkInstallation(str(home), found[1] if found else "")


def installed_spark_home() -> Path | None:
    """The Spark in the pyspark package of this Python; None without one."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else None


def _checked(home: Path, python: str) -> SparkInstallation:
    program = home / "bin" / "spark-submit"
    if not os.access(program, os.X_OK):
        raise SparkUnusable(f"{program} does not exist or is not executable")
    found = _core_of(home)
    if found is None:
        raise SparkUnusable(f"{home / 'jars'} has no spark-core jar")
    if not OLDEST_LINE <= (int(found[2]), int(found[3])) <= NEWEST_LINE:
        lines = f"{_dotted(OLDEST_LINE)} to {_dotted(NEWEST_LINE)}"
        raise SparkUnusable(f"{home} is Spark {found[1]}; supported are {lines}")
    return SparkInstallation(str(home), found[1], python)


def _core_of(home: Path) -> re.Match[str] | None:
    try:
        names = sorted(path.name for path in (home / "jars").iterdir())
    except OSError:
        return None
    return next(filter(None, map(_CORE.fullmatch, names)), None)


def _look_into(python: Path) -> tuple[tuple[int, ...], str]:
    """The version of a Python, and the file of its pyspark."""
    command = [str(python), "-I", "-c", _LOOK]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LOOK_SECONDS, check=True)
        version, origin = json.loads(done.stdout)
        return tuple(map(int, version)), str(origin)
    except subprocess.CalledProcessError as error:
        words = error.stderr.strip() or f"exit code {error.returncode}"
        raise SparkUnusable(f"{python} does not work: {shortened(words, _MAX_QUOTED_CHARACTERS)}") from error
    except (OSError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
        raise SparkUnusable(f"{python} does not work: {error}") from error


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
