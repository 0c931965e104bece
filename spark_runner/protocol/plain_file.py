"""Reads files that another user may have created: regular files only, up to a limit, without blocking."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MAX_JSON_BYTES = 4 * 1024 * 1024


def open_plain(path: Path, *, of: int | None = None, links: bool = True) -> int:
    """Open a regular file to read; raises ValueError for anything else, and OSError.

    A pipe without a writer would block, and a device has no end. With `of`, the file must belong to that user
    and must not be a symbolic link: a user with write access to the folder could link to files of this user.
    `links`: whether the file may be a symbolic link; OSError if it may not.
    """
    follow = 0 if of is None and links else os.O_NOFOLLOW
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | follow)
    found = os.fstat(file)
    mode = found.st_mode
    if stat.S_ISREG(mode) and of in {None, found.st_uid}:
        return file
    os.close(file)
    if stat.S_ISREG(mode):
        message = f"belongs to user {found.st_uid}, not to user {of}"
        raise ValueError(message)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    message = f"is {'a pipe' if stat.S_ISFIFO(mode) else 'a device or socket'}, not a file"
    raise ValueError(message)


def check_plain(path: Path) -> None:
    """Raise ValueError, with the path, for anything but a regular file, and OSError if opening fails."""
    try:
        os.close(open_plain(path))
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error


def read_plain(path: Path, limit: int, *, of: int | None = None) -> bytes:
    """The contents of a regular file, at most `limit` bytes; raises ValueError as `open_plain`, and OSError.

    A longer file raises ValueError too. `of`: as in `open_plain`.
    """
    with os.fdopen(open_plain(path, of=of), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        message = f"is longer than {limit:,} bytes, which is the limit"
        raise ValueError(message)
    return data


def read_json(path: Path) -> Any:
    """The JSON value in a regular file; raises ValueError, OSError."""
    return parse_json(read_plain(path, MAX_JSON_BYTES))


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; raises ValueError, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        message = "it is nested too deeply"
        raise ValueError(message) from None
