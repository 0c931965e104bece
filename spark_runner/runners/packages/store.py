"""The folder of environments on this host, which all its workers share.

<cache>/packages/
    <key>.json             the manifest of the present environment of a key, written last
    <key>-<random>/        its packages, read-only for drivers of other users
    <key>-<random>.lock    drivers hold a shared lock on it; its time is that of the last use
    <key>-<random>.zip     the archive for other hosts, if one was needed
    <key>.install          locked by the process that installs
    .build-<random>/       an installation or archive that is not complete; worthless without its process
"""

import fcntl
import os
import stat
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from loguru import logger

from orchestrator.logs.files import replace_file
from queues import UnsafeDirectory, private_directory
from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.runners.files import remove_tree
from spark_runner.runners.packages.environment import Environment, Wanted, described
from spark_runner.runners.packages.pip import check_pip, index_settings, install
from spark_runner.runners.packages.provided import write_provided
from spark_runner.runners.packages.python import TargetPython, python_at

UNUSED_SECONDS = 30 * 86_400.0  # then an environment is removed
_YOUNG_SECONDS = 3_600.0  # a job that was submitted with it has started by then, and holds its lock
MAX_BYTES = 20 << 30  # of all environments; beyond, those that were unused for the longest time are removed
_FOLDER_MODE, _FILE_MODE = 0o755, 0o644
_BUILD = ".build-"


class EnvironmentStore:
    """Installs environments, each once, and removes those that no job uses."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self._max_bytes = max_bytes

    def environment(self, wanted: Wanted) -> Environment:
        """The environment, installed if it is missing or damaged; takes as long as pip does.

        Raises RefusedSubmission where no try can succeed, SubmissionError where a later one may.
        """
        try:
            private_directory(self.folder, mode=_FOLDER_MODE).chmod(_FOLDER_MODE)
        except (OSError, UnsafeDirectory) as error:
            raise SubmissionError(f"the folder for packages cannot be used: {error}") from error
        check_pip()
        _check_spark(wanted)
        python = python_at(wanted.python)
        key = wanted.key(python, index_settings())
        try:
            with _locked(self.folder / f"{key}.install"):
                found = Environment.read(self.folder / f"{key}.json")
                if found is None or not found.is_intact():
                    self._prune()
                    found = self._install(key, wanted, python)
                note_use(found)
                if wanted.packed and not found.archive.exists():
                    self._prune()
                    self._pack(key, found)
                return found
        except OSError as error:
            reason = error.strerror or error
            raise SubmissionError(
                f"the packages of the job cannot be stored in {self.folder}: {reason}"
            ) from error

    def _install(self, key: str, wanted: Wanted, python: TargetPython) -> Environment:
        with self._build(key) as build:
            started = time.monotonic()
            logger.info("installing {}", wanted)
            provided = build / "provided"
            provided.mkdir()
            constraints = write_provided(provided, wanted.spark)
            target = build / "packages"
            target.mkdir()
            install(wanted.requirements, target, python=python, provided=provided, constraints=constraints)
            for each in target.glob("pyspark-*.dist-info"):
                remove_tree(each)  # the wheel that stood for PySpark
            _open_to_all(target)
            made = described(target, python)
            made = replace(made, folder=self.folder / f"{key}-{uuid.uuid4().hex[:8]}")
            os.sync()  # after a power failure a complete manifest must not name empty files
            lock = build / "use"
            with _locked(lock, fcntl.LOCK_SH):  # until it has a manifest, it looks like one that was replaced
                lock.chmod(_FILE_MODE)
                lock.rename(made.lock)  # locked before others reach it: they cannot stop this process
                target.rename(made.folder)
                replace_file(self.folder / f"{key}.json", made.to_json(), mode=_FILE_MODE, durable=True)
            logger.info("installed {} in {:.1f} s", wanted, time.monotonic() - started)
            return made

    @contextmanager
    def _build(self, key: str) -> Iterator[Path]:
        """A private folder for what is not complete yet; after a kill another process removes it."""
        build = self.folder / f"{_BUILD}{key}-{uuid.uuid4().hex[:8]}"
        build.mkdir(mode=0o700)
        lock = os.open(build / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends: then anyone may remove the folder
            yield build
        finally:
            os.close(lock)
            remove_tree(build, ignore_errors=True)

    def _pack(self, key: str, found: Environment) -> None:
        """Write the archive: complete or absent."""
        with self._build(key) as build:
            draft = build / "archive"
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for path in sorted(found.folder.rglob("*")):
                    if path.is_file() and "__pycache__" not in path.parts:
                        archive.write(path, path.relative_to(found.folder))
            draft.chmod(_FILE_MODE)
            draft.rename(found.archive)

    def _prune(self) -> None:
        """Remove interrupted installations, and environments that are old, replaced or beyond the limit."""
        for build in self.folder.glob(f"{_BUILD}*"):
            with _try_lock(build / "lock") as is_free:
                if is_free:
                    remove_tree(build, ignore_errors=True)
        present = list[Environment]()
        for folder in self.folder.glob("*-*"):
            if folder.is_dir() and not folder.name.startswith("."):
                found = Environment.read(_manifest(folder))
                if found is not None and found.folder == folder:
                    present.append(found)
                else:
                    _remove(folder, lambda found: found is None)
        kept = sum(map(_size, present))
        for found in sorted(present, key=last_use):
            limit, size = _YOUNG_SECONDS if kept > self._max_bytes else UNUSED_SECONDS, _size(found)
            if _unused(found) > limit and _remove(found.folder, partial(_is_unused, limit)):
                logger.info("removed unused packages: {}", ", ".join(found.installed))
                kept -= size


def note_use(environment: Environment) -> None:
    """Set the time of the last use; raises OSError."""
    environment.lock.touch(_FILE_MODE)


def last_use(environment: Environment) -> float:
    """The time of the last use (s since the epoch); 0 = unknown."""
    try:
        return environment.lock.stat().st_mtime
    except OSError:
        return 0.0


def _size(environment: Environment) -> int:
    """Bytes of the packages and of their archive."""
    try:
        return environment.size + environment.archive.stat().st_size
    except OSError:
        return environment.size


def _is_unused(limit: float, found: Environment | None) -> bool:
    return found is None or _unused(found) > limit


def _unused(environment: Environment) -> float:
    return time.time() - last_use(environment)


def _manifest(folder: Path) -> Path:
    return folder.with_name(f"{folder.name.partition('-')[0]}.json")


def _remove(folder: Path, may: Callable[[Environment | None], bool]) -> bool:
    """Remove an environment that no driver uses; returns whether it was removed.

    `may` decides about the environment under its lock; it gets None where a manifest names another folder.
    """
    lock = folder.with_name(f"{folder.name}.lock")
    with _try_lock(lock) as is_free:
        found = Environment.read(_manifest(folder))
        current = found if found is not None and found.folder == folder else None
        if not is_free or not may(current):
            return False
        if current is not None:
            _manifest(folder).unlink(missing_ok=True)  # first: no new job uses half of it
        # Before the folder, by which an interrupted removal is found.
        folder.with_name(f"{folder.name}.zip").unlink(missing_ok=True)
        remove_tree(folder, ignore_errors=True)
        lock.unlink(missing_ok=True)
        return True


def _check_spark(wanted: Wanted) -> None:
    from packaging.requirements import Requirement  # noqa: PLC0415 - few jobs have requirements
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - likewise

    for text in wanted.requirements:
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) != "pyspark" or not wanted.spark:
            continue
        if not requirement.specifier.contains(wanted.spark, prereleases=True):
            raise RefusedSubmission(
                f"`requirements`: {text} is not the Spark of the pool, which is {wanted.spark}; remove it, or"
                " use a pool with that Spark"
            )


def _open_to_all(folder: Path) -> None:
    """Let all users read the files, whatever the umask of this process; none else may write."""
    for parent, _, names in os.walk(folder):
        Path(parent).chmod(_FOLDER_MODE)
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                executable = path.stat().st_mode & stat.S_IXUSR
                path.chmod(_FOLDER_MODE if executable else _FILE_MODE)


@contextmanager
def _locked(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Whether the lock is free; it is held meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield True  # without a file there is no user
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)
