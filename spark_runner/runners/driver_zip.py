"""The zip with the driver program for nodes that have only Java and PySpark."""

import importlib.util
import io
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from spark_runner.protocol.errors import SubmissionError
from spark_runner.runners.files import content_file

# The driver imports from these; the excluded parts are for workers, or large and never imported.
_PACKAGES = ("queues", "spark_runner", "kazoo", "puresasl")
_LEFT_OUT = frozenset(
    {
        *("compiler", "embedded", "runners", "tests", "testing", "__pycache__"),
        *("admin", "claims", "consumer", "dispatch", "producer"),  # of queues
    }
)
_OPTIONS = "options.py"  # of connectors: the compiler checks them, with pydantic
_UNUSED = frozenset({"kazoo/handlers/eventlet.py", "kazoo/handlers/gevent.py", "kazoo/recipe/cache.py"})
# Modules of logs: the masks of secrets, and the helper for files.
_MODULES = {
    "orchestrator": ("__init__",),
    "orchestrator.logs": ("__init__", "files"),
    "orchestrator.logs.record": ("__init__", "redaction", "secret_patterns", "text"),
}
_MAX_PACKAGE_BYTES = 64 * 1024 * 1024  # the zip travels to each driver and executor
_COMPILED = frozenset({".so", ".pyd", ".dylib"})
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip can hold: equal files make equal zips
_MODE = 0o100644 << 16  # readable by all: it holds nothing secret, and the cluster's user is another one


@cache
def driver_zip(folder: Path, packages: tuple[str, ...] = ()) -> Path:
    """The zip in this folder, created if missing; its name has the hash of its contents.

    `packages` are further Python packages of this host that the driver or the executors import. Raises
    SubmissionError if it cannot be written, or a package cannot run from a zip.
    """
    return content_file(folder, "driver", ".zip", zip_bytes(packages))


@cache
def zip_bytes(packages: tuple[str, ...] = ()) -> bytes:
    """The contents of the zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        found = {**dict(_modules()), **{name: path for each in packages for name, path in _files(each)}}
        for name, path in sorted(found.items()):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, _MODE
            archive.writestr(info, path.read_bytes())
    return buffer.getvalue()


def _modules() -> Iterator[tuple[str, Path]]:
    for package, names in _MODULES.items():
        spec = importlib.util.find_spec(package)
        for root in (spec and spec.submodule_search_locations) or ():
            for name in names:
                yield f"{package.replace('.', '/')}/{name}.py", Path(root, f"{name}.py")
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for root in (spec and spec.submodule_search_locations) or ():
            for path in Path(root).rglob("*.py"):
                inner = path.relative_to(root)
                is_options = inner.name == _OPTIONS and "connectors" in inner.parts
                is_used = not is_options and f"{package}/{inner.as_posix()}" not in _UNUSED
                if is_used and not _LEFT_OUT.intersection(inner.parts[:-1]):
                    yield f"{package}/{inner.as_posix()}", path


def _files(package: str) -> Iterator[tuple[str, Path]]:
    """All files of a package of connectors or functions, by their names in the zip."""
    if package in _PACKAGES:
        return
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # no name of a module, or in a package that cannot be imported
        spec = None
    if spec is None or not (spec.submodule_search_locations or (spec.has_location and spec.origin)):
        raise SubmissionError(
            f"the Python package {package} of a connector or function is not installed on this host"
        )
    if not spec.submodule_search_locations:
        yield f"{package}.py", _source(package, Path(str(spec.origin)))
        return
    size = 0
    for root in spec.submodule_search_locations:
        for path in Path(root).rglob("*"):
            inner = path.relative_to(root)
            if not path.is_file() or "__pycache__" in inner.parts:
                continue
            if not path.resolve().is_relative_to(Path(root).resolve()):
                message = (
                    f"{path} of the Python package {package} of a connector is a link to a file elsewhere"
                )
                raise SubmissionError(f"{message}, which does not travel; install a copy of the file")
            size += path.stat().st_size
            if size > _MAX_PACKAGE_BYTES:
                raise SubmissionError(
                    f"the Python package {package} of a connector has more than"
                    f" {_MAX_PACKAGE_BYTES // 1024**2} MiB, which is the limit; install it in the Python of"
                    " all nodes, and leave it out of `modules`"
                )
            yield f"{package}/{inner.as_posix()}", _source(package, path)


def _source(package: str, path: Path) -> Path:
    if path.suffix in _COMPILED:
        raise SubmissionError(
            f"the Python package {package} of a connector or function has compiled modules ({path.name}),"
            " which cannot travel; install it in the Python of all nodes, and leave it out of `modules`"
        )
    return path
