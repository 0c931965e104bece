"""The files below a folder of Hadoop, and those of them that readers see."""

from collections.abc import Iterator
from typing import Any


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
