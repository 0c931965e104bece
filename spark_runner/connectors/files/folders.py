"""Folders: the files in them, those of them that readers see, and the exchange of two folders."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HERE = -100  # AT_FDCWD: paths are those of this process
_EXCHANGE = 2  # RENAME_EXCHANGE


def data_files(files: Any, root: Any) -> Iterator[tuple[Any, str]]:
    """The status of each file that readers see, and its path below `root`.

    Of the folders below it only partitions count; others may belong to other tables.
    """
    for file, name in all_files(files, root):
        *folders, own = name.split("/")
        if not _is_hidden(own) and all("=" in folder and not _is_hidden(folder) for folder in folders):
            yield file, name


def all_files(files: Any, root: Any) -> Iterator[tuple[Any, str]]:
    """Likewise, of all files; none if `root` does not exist."""
    if not files.exists(root):
        return
    found, start = files.listFiles(root, True), len(root.toUri().getPath().rstrip("/")) + 1
    while found.hasNext():
        file = found.next()
        yield file, file.getPath().toUri().getPath()[start:]


def _is_hidden(name: str) -> bool:
    """Whether Spark ignores the name when it reads a directory."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def exchange(one: str, other: str) -> bool:
    """Give each of two folders the name of the other; False where the system or the file system cannot."""
    rename: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # Linux, glibc 2.28
    return rename is not None and rename(_HERE, one.encode(), _HERE, other.encode(), _EXCHANGE) == 0


def is_walled(path: str) -> bool:
    """Whether a directory cannot be swapped with one beside it."""
    return Path(path).is_dir() and (os.path.ismount(path) or not os.access(Path(path).parent, os.W_OK))
