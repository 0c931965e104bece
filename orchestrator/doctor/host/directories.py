"""The directories of this host: owner, rights, and whether they can be written and executed from."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from orchestrator.config.directories import existing_above, used_directories
from orchestrator.config.settings import Settings
from orchestrator.doctor.findings import Finding, FindingKind
from queues import UnsafeDirectory, private_directory

_AS_IT_IS = 0o777  # a look must not change the mode of a directory
_JAVA_TMP = Path("/tmp")  # noqa: S108 - Java's default, whatever TMPDIR says


def check_directories(settings: Settings) -> Iterator[Finding]:
    """Directories that another user may have changed, and a state directory that cannot be written."""
    seen = set[Path]()
    for directory in (settings.state_dir, *used_directories(settings)):
        if any(directory.is_relative_to(unsafe) for unsafe in seen):
            continue
        try:
            private_directory(directory, make=False, mode=_AS_IT_IS)
        except UnsafeDirectory as error:
            seen.add(error.path)
            what, _, remedy = str(error).partition("; ")
            yield Finding.of(FindingKind.UNSAFE_DIRECTORY, str(error.path), what, remedy)
        except OSError:  # the part that uses the directory reports the error
            continue
    yield from _unwritable(settings.state_dir, "state_dir")
    if settings.class_archives:
        yield from _unwritable(settings.cache_dir, "cache_dir")


def _unwritable(directory: Path, setting: str) -> Iterator[Finding]:
    try:
        there = existing_above(directory)
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        what = f"{setting} cannot be written as user {os.geteuid()}: {error.strerror or error}"
        remedy = f"give this user a directory there, or set {setting} to one that it can write"
        yield Finding.of(FindingKind.UNWRITABLE_DIRECTORY, str(directory), what, remedy)


def temporary_directory() -> Path | None:
    """Where Python writes temporary files; None if it finds no place."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:  # all are read-only or full
        return None


def check_temporary(_settings: Settings) -> Iterator[Finding]:
    """A directory for temporary files that cannot be written, or from which nothing can be executed."""
    own = temporary_directory()
    if own is None:
        place = os.environ.get("TMPDIR") or str(_JAVA_TMP)
        what = f"no temporary file can be written as user {os.geteuid()}: pip and many programs need them"
        remedy = "free space there, or set TMPDIR to a directory that this user can write"
        yield Finding.of(FindingKind.UNWRITABLE_DIRECTORY, place, what, remedy)
    for directory in sorted({_JAVA_TMP, own or _JAVA_TMP}):
        try:
            flags = os.statvfs(directory).f_flag
        except OSError:
            continue
        if flags & os.ST_NOEXEC:
            what = "it is mounted noexec: Spark cannot load the compression libraries that it unpacks there"
            remedy = (
                "mount it with exec, or set TMPDIR and the Spark property spark.driver.extraJavaOptions "
                "to -Djava.io.tmpdir=DIRECTORY"
            )
            yield Finding.of(FindingKind.NOEXEC_TMP, str(directory), what, remedy)
