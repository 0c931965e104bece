"""Directories that only this user can change: their contents are executed, trusted or secret."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from queues.model.errors import QueueError

_MAX_LINKS = 40  # the kernel's limit


def trouble_above(path: Path) -> tuple[Path, str] | None:
    """The first directory or link above an absolute path through which another user can replace it, and why.

    A missing part is no trouble: the caller that creates it checks again. Raises OSError.
    """
    try:
        for location, found in _walk(path.parent):
            trouble = _of_link(found) if stat.S_ISLNK(found.st_mode) else _of_directory(found)
            if trouble:
                return location, trouble
    except FileNotFoundError:
        pass
    return None


def _walk(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Each directory and link of a path, in the order in which the kernel resolves them."""
    location, left, links = Path("/"), list(path.parts[1:]), 0
    yield location, location.lstat()
    while left:
        name = left.pop(0)
        if name == os.pardir:
            location = location.parent  # correct, because `location` contains no link
            continue
        found = (location / name).lstat()
        yield location / name, found
        if not stat.S_ISLNK(found.st_mode):
            location /= name
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = (location / name).readlink()
        if target.is_absolute():
            location = Path("/")
        left = [part for part in target.parts if part != target.anchor] + left


def _of_link(found: os.stat_result) -> str:
    return "" if found.st_uid in {0, os.geteuid()} else f"is a symbolic link of user {found.st_uid}"


def _of_directory(found: os.stat_result) -> str:
    if found.st_uid not in {0, os.geteuid()}:
        return f"belongs to user {found.st_uid}"
    if found.st_mode & stat.S_ISVTX:
        return ""  # such as /tmp: other users cannot rename or remove this user's files there
    if found.st_mode & stat.S_IWOTH:
        return f"can be written by all users (mode {stat.S_IMODE(found.st_mode):04o})"
    if found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid):
        return f"can be written by group {found.st_gid} (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _is_own_group(group: int) -> bool:
    """Whether a group is root's, or the one that `useradd` creates for this user: ~/.local is often 0775."""
    if group == 0:
        return True
    import grp  # noqa: PLC0415 - seldom needed, and slow with a directory service
    import pwd  # noqa: PLC0415 - likewise

    try:
        user, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == user and set(entry.gr_mem) <= {user}


_PRIVATE = 0o700
_WRITE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UnsafeDirectory(QueueError):
    """Another user can change the directory's contents, or may have done so; the message says what to do."""

    def __init__(self, path: Path, trouble: str, remedy: str) -> None:
        super().__init__(f"{path} is not used: {trouble}; {remedy}")
        self.path = path


def private_directory(path: Path, *, make: bool = True, mode: int = _PRIVATE) -> Path:
    """Create the directory with mode 0700, or check and close an existing one; returns its absolute path.

    It refuses a symbolic link, the directory of another user (for root too), a directory that others can
    write, and one below a directory in which another user can replace it. If others can only read the
    directory, its mode becomes 0700, unless `mode` permits what they can do. Without `make`, a missing
    directory is no error. Raises UnsafeDirectory, OSError.
    """
    path = path.absolute()
    _check_above(path)
    if make:
        _make(path)
        _check_above(path)  # another user may have created a missing part
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        if make:
            raise
        return path
    except OSError:
        if path.is_symlink():
            raise UnsafeDirectory(
                path, "it is a symbolic link", "name the directory that it points to"
            ) from None
        if path.lstat().st_uid != os.geteuid():
            raise UnsafeDirectory(path, *_foreign_owner(path.lstat())) from None
        raise
    try:
        _check(path, os.fstat(directory))
        if stat.S_IMODE(os.fstat(directory).st_mode) & 0o077 & ~mode:
            os.fchmod(directory, _PRIVATE)
    finally:
        os.close(directory)
    return path


def is_replaceable(path: Path) -> bool:
    """Whether a user other than this one and root can replace a file."""
    try:
        _check_above(path.absolute())
    except (UnsafeDirectory, OSError):
        return True
    return False


def check_files(directory: Path) -> None:
    """Check that only this user can have written a directory's files; raises UnsafeDirectory, OSError."""
    for path in directory.iterdir():
        if not is_ours(path.lstat()):
            raise UnsafeDirectory(path, "another user may have written it", "inspect it, then remove it")


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600, regardless of the umask; raises OSError, also for a symbolic link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)  # others could read a file of an earlier version
        file.write(text)


def is_ours(found: os.stat_result) -> bool:
    """Whether only this user and root can have changed a file, or the contents of a directory."""
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITE_BY_OTHERS


def _make(path: Path) -> None:
    missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
    for folder in reversed(list(missing)):
        with suppress(FileExistsError):  # created by another process of this user; or a dangling link
            folder.mkdir(mode=_PRIVATE)


def _check(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UnsafeDirectory(path, *_foreign_owner(found))
    if found.st_mode & _WRITE_BY_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise UnsafeDirectory(
            path,
            f"other users can write to it (mode {mode:04o}), and may have done so",
            f"inspect its contents, then run `chmod 700 {path}`; or name another directory",
        )


def _foreign_owner(found: os.stat_result) -> tuple[str, str]:
    return (
        f"it belongs to user {found.st_uid}, but this process runs as user {os.geteuid()}",
        "name a directory that belongs to this user",
    )


def _check_above(path: Path) -> None:
    """Check each directory and link on the path: a user who can write to one of them can replace `path`."""
    found = trouble_above(path)
    if found is not None:
        location, trouble = found
        raise UnsafeDirectory(
            path,
            f"{location}, above it, {trouble}",
            "another user could replace it: name another directory",
        )
