"""Locations of the files of a table: makes paths absolute, and compares them."""

import os
import posixpath
import re

from spark_runner.sql.text.source import MAX_PATH_CHARACTERS

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two characters at least: `C:` is a drive


def is_relative(path: str) -> bool:
    """Whether the meaning of `path` depends on the folder."""
    return not (_SCHEME.match(path) or path.startswith(("/", "~")))


def resolve(path: str, base_dir: str) -> str:
    """`path` made absolute against `base_dir`; `~` is expanded, a URI such as s3a://x/y stays as it is.

    Raises ValueError for a path that no file system accepts.
    """
    if len(path) > MAX_PATH_CHARACTERS:
        message = f"a path of {len(path):,} characters is too long, the limit is {MAX_PATH_CHARACTERS:,}"
        raise ValueError(message)
    if "\0" in path:
        message = "a path cannot hold the character NUL"
        raise ValueError(message)
    if scheme := _SCHEME.match(path):
        if not path.startswith("/", scheme.end()):  # Hadoop: "Relative path in absolute URI"
            message = "it is neither a path nor a URL such as s3a://bucket/folder; before ':' write './'"
            raise ValueError(message)
        return path
    return os.path.normpath(os.path.join(os.path.abspath(base_dir), os.path.expanduser(path)))  # noqa: PTH100, PTH111, PTH118 - the result is text; Path would fold nothing more


def contains(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or lies below it; both are `comparable`."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def overlap(one: str, two: str) -> bool:
    """Whether a write to one of the two changes the contents of the other; both are `comparable`."""
    return contains(one, two) or contains(two, one)


def comparable(location: str) -> str:
    """The same spelling for file:/x, file:///x and /x; follows links that are visible on this host."""
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    if location.startswith("/"):
        return os.path.realpath(location)
    scheme, _, rest = location.partition("://")
    return f"{scheme}://{posixpath.normpath(rest)}" if rest else location
