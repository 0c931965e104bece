"""Which Python modules a script may name: those of the Python files of its job, and no others."""

import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

_PLATFORM = frozenset(
    {
        *("__main__", "orchestrator", "queues", "spark_runner", "kazoo", "puresasl"),
        *("pyspark", "py4j", "pyarrow"),
    }
)
ARCHIVES = (".zip", ".egg", ".jar")
"""The endings of Python files that hold several modules, as Spark knows them."""


def refused(module: str) -> str | None:
    """Why no file of a job can be this module; None if one can."""
    package = module.partition(".")[0]
    if package in sys.stdlib_module_names:
        return f"'{package}' is a module of Python itself"
    if package in _PLATFORM:
        return f"'{package}' is a module of the platform"
    return None


def file_names(files: Iterable[str]) -> list[str]:
    """The names that the Python files of a job have on every host."""
    return sorted({PurePosixPath(file.partition("#")[0]).name for file in files if file})


def is_of_files(origin: str, module: str, names: Iterable[str]) -> bool:
    """Whether the module in the file `origin` is in one of the files with these names."""
    path, known = PurePosixPath(origin), set(names)
    if any(part.name in known and part.suffix.lower() in ARCHIVES for part in path.parents):
        return True
    return path.name in known and path.name == f"{module}.py"
