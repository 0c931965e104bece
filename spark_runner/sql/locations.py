"""Locations of the files of a table: makes paths absolute, and compares them."""

import os
import posixpath
import re

from spark_runner.sql.text.source import MAX_PATH_CHARACTERS

_TOPICS = "kafka://"
# What is quickly compared with a name of 249 characters: no groups, and few repetitions.
_QUICK_PATTERN = re.compile(r"\^?(?:[\w-]|\\\.|\.[*+]?)*\$?")
_MAX_REPETITIONS = 2
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
    """Whether a write to one of the two changes the contents of the other; both are `comparable`.

    Topics of Kafka are `kafka://servers/topic,topic`, or a pattern behind `?`. A pattern with groups or many
    repetitions is taken to match no topic.
    """
    if one.startswith(_TOPICS) and two.startswith(_TOPICS):
        return _share_topics(one, two)
    return contains(one, two) or contains(two, one)


def _share_topics(one: str, two: str) -> bool:
    servers, _, topics = one.removeprefix(_TOPICS).partition("/")
    others, _, more = two.removeprefix(_TOPICS).partition("/")
    if servers != others:
        return False
    return any(
        name == other or _matches(name, other) or _matches(other, name)
        for name in _listed(topics)
        for other in _listed(more)
    )


def _listed(topics: str) -> list[str]:
    return [topics] if topics.startswith("?") else topics.split(",")


def _matches(pattern: str, topic: str) -> bool:
    if not pattern.startswith("?") or topic.startswith("?"):
        return False
    pattern = pattern[1:]
    repetitions = pattern.count("*") + pattern.count("+")
    if repetitions > _MAX_REPETITIONS or not _QUICK_PATTERN.fullmatch(pattern):
        return False
    return re.search(pattern, topic) is not None


def comparable(location: str) -> str:
    """The same spelling for file:/x, file:///x and /x; follows links that are visible on this host."""
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    if location.startswith("/"):
        return os.path.realpath(location)
    scheme, _, rest = location.partition("://")
    return f"{scheme}://{posixpath.normpath(rest)}" if rest else location
