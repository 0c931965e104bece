"""Directories that only this user can change: what stands in them is run, believed or secret."""

import os
import stat
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from queues.errors import QueueError
from queues.way_to import trouble_above

_PRIVATE = 0o700
_WRITE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UnsafeDirectory(QueueError):
    """Another user may have changed what stands in the directory, or can; the message says what to do."""

    def __init__(self, path: Path, trouble: str, remedy: str) -> None:
        super().__init__(f"{path} is not used: {trouble}; {remedy}")
        self.path = path


def private_directory(path: Path, *, make: bool = True, mode: int = _PRIVATE) -> Path:
    """Make the directory with mode 0700, or check and close the one that is there; returns its absolute path.

    Refused are: a symbolic link, the directory of another user (for root too), one that others can write, and
    one below a directory in which another user can replace it. An own directory that others can only read is
    set to 0700, unless `mode` lets them do what they can. Without `make`, a directory that is not there is no
    error. Raises UnsafeDirectory, OSError.
    """
    path = path.absolute()
    _check_above(path)
    if make:
        _make(path)
        _check_above(path)  # what was missing may have been made by another user
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        if make:
            raise
        return path
    except OSError:
        if path.is_symlink():
            raise UnsafeDirectory(
                path, "it is a symbolic link", "name the directory that it leads to"
            ) from None
        if path.lstat().st_uid != os.geteuid():
            raise UnsafeDirectory(path, *_of_another(path.lstat())) from None
        raise
    try:
        _check(path, os.fstat(directory))
        if stat.S_IMODE(os.fstat(directory).st_mode) & 0o077 & ~mode:
            os.fchmod(directory, _PRIVATE)
    finally:
        os.close(directory)
    return path


def is_replaceable(path: Path) -> bool:
    """Whether another user than this one and root can put something else in the place of a file."""
    try:
        _check_above(path.absolute())
    except (UnsafeDirectory, OSError):
        return True
    return False


def check_files(directory: Path) -> None:
    """Check that all files in an own directory are this user's alone; raises UnsafeDirectory, OSError."""
    for path in directory.iterdir():
        if not is_ours(path.lstat()):
            raise UnsafeDirectory(path, "another user may have written it", "look at it, and remove it")


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600, whatever the umask; raises OSError, for a symbolic link too."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)  # of an earlier version, others could read it
        file.write(text)


def is_ours(found: os.stat_result) -> bool:
    """Whether nobody but this user, and root, can have changed a file, or what stands in a directory."""
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITE_BY_OTHERS


def _make(path: Path) -> None:
    missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
    for folder in reversed(list(missing)):
        with suppress(FileExistsError):  # of another process of ours; or a symbolic link to nowhere
            folder.mkdir(mode=_PRIVATE)


def _check(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UnsafeDirectory(path, *_of_another(found))
    if found.st_mode & _WRITE_BY_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise UnsafeDirectory(
            path,
            f"other users can write in it (mode {mode:04o}), and may have done so",
            f"look at what stands in it, then `chmod 700 {path}`; or name another directory",
        )


def _of_another(found: os.stat_result) -> tuple[str, str]:
    return (
        f"it belongs to user {found.st_uid}, this process is user {os.geteuid()}",
        "name a directory of this user's own",
    )


def _check_above(path: Path) -> None:
    """Check the way to it, as it is written and as links lead: whoever can write there can replace `path`."""
    found = trouble_above(path)
    if found is not None:
        place, trouble = found
        raise UnsafeDirectory(
            path,
            f"{place}, above it, {trouble}",
            "another user could replace it: name another directory",
        )
