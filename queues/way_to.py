"""Who can replace what is on the way to a path: each directory and each symbolic link on it is looked at."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_MAX_LINKS = 40  # as the kernel follows


def trouble_above(path: Path) -> tuple[Path, str] | None:
    """The first thing above an absolute path by which another user can replace it, and why; raises OSError.

    What is not there is no trouble: who makes it looks again.
    """
    try:
        for place, found in _way(path.parent):
            trouble = _of_link(found) if stat.S_ISLNK(found.st_mode) else _of_directory(found)
            if trouble:
                return place, trouble
    except FileNotFoundError:
        pass
    return None


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Each directory and link in the order in which the kernel meets them."""
    place, left, links = Path("/"), list(path.parts[1:]), 0
    yield place, place.lstat()
    while left:
        name = left.pop(0)
        if name == os.pardir:
            place = place.parent  # of what no link leads to any more
            continue
        found = (place / name).lstat()
        yield place / name, found
        if not stat.S_ISLNK(found.st_mode):
            place /= name
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = (place / name).readlink()
        if target.is_absolute():
            place = Path("/")
        left = [part for part in target.parts if part != target.anchor] + left


def _of_link(found: os.stat_result) -> str:
    return "" if found.st_uid in {0, os.geteuid()} else f"is a symbolic link of user {found.st_uid}"


def _of_directory(found: os.stat_result) -> str:
    if found.st_uid not in {0, os.geteuid()}:
        return f"belongs to user {found.st_uid}"
    if found.st_mode & stat.S_ISVTX:
        return ""  # as /tmp: what is ours there stays ours
    if found.st_mode & stat.S_IWOTH:
        return f"can be written by all users (mode {stat.S_IMODE(found.st_mode):04o})"
    if found.st_mode & stat.S_IWGRP and not _is_ours_alone(found.st_gid):
        return f"can be written by group {found.st_gid} (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _is_ours_alone(group: int) -> bool:
    """Whether a group is root's, or the one that `useradd` makes for this user: ~/.local is often 0775."""
    if group == 0:
        return True
    import grp  # noqa: PLC0415 - seldom needed, and with a directory service slow
    import pwd  # noqa: PLC0415 - likewise

    try:
        user, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == user and set(entry.gr_mem) <= {user}
