"""Python environments with the other lines of Spark, made once per machine: 460 MB each.

`python -m tests.servers.spark_lines` makes them before the tests.
"""

import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.servers.cache import cache_folder, cached
from tests.servers.zookeeper import unavailable

MAKE_TIMEOUT_S = 1200  # half a minute of processor time; the rest is the network and the disk
_LOCKS = Path(__file__).parents[2] / "requirements"
_HASHES = r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+"
_ENTRY = re.compile(rf"^(?P<name>[\w.-]+)==(?P<version>[\w.]+){_HASHES}", re.MULTILINE)


def locked_lines() -> dict[str, str]:
    """The version of each line, by its two numbers."""
    found = (entry["version"] for entry in _entries("lines.txt", "pyspark"))
    return {version.rpartition(".")[0]: version for version in found}


@dataclass(frozen=True)
class _Wanted:
    """The packages of an environment, and its name in the cache."""

    requirements: str
    name: str

    @classmethod
    def of(cls, line: str) -> "_Wanted":
        locked = _entries("lines.txt", "pyspark")
        spark = next(entry for entry in locked if entry["version"].startswith(f"{line}."))
        (py4j,) = _entries("test.txt", "py4j")
        requirements = f"{spark[0]}\n{py4j[0]}\n"
        python = ".".join(map(str, sys.version_info[:2]))
        return cls(requirements, f"spark-{spark['version']}-{python}-{zlib.crc32(requirements.encode()):08x}")


def environment_of(line: str) -> Path:
    """The environment with this line, made if it is missing; skips, or fails in CI, without the packages."""
    wanted = _Wanted.of(line)
    return cached(wanted.name, partial(_make, wanted.requirements))


def environments() -> list[Path]:
    """The environments of all lines that exist."""
    return [made for line in locked_lines() if (made := cache_folder() / _Wanted.of(line).name).is_dir()]


def _entries(lock: str, name: str) -> Iterator[re.Match[str]]:
    return (found for found in _ENTRY.finditer((_LOCKS / lock).read_text("utf-8")) if found["name"] == name)


def _make(locked: str, folder: Path) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(locked, "ascii")
    # pip is that of the tests, with the locked build tools: an environment of its own would fetch newer ones.
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    install += ["--require-hashes", "--no-cache-dir", "--no-compile", "--ignore-installed"]
    try:
        for command in (
            [sys.executable, "-m", "venv", "--without-pip", str(folder)],
            [*install, "--prefix", str(folder), "-r", str(requirements)],
        ):
            subprocess.run(command, check=True, timeout=MAKE_TIMEOUT_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        unavailable(f"no other line of Spark: pip did not end within {MAKE_TIMEOUT_S} s")
    except subprocess.CalledProcessError as error:
        unavailable(f"no other line of Spark: {error.stderr[-2000:]}")


if __name__ == "__main__":
    try:
        for each in locked_lines():
            print(environment_of(each))  # noqa: T201 - the output of the program
    except pytest.skip.Exception as reason:  # not in CI: the tests that need it are skipped too
        print(reason)  # noqa: T201 - likewise
