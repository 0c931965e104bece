"""Paths that Spark and Hadoop read as patterns of names."""

import re

_SPECIAL = re.compile(r"[][{}*?\\]")


def is_pattern(path: str) -> bool:
    """Whether readers take a path for a pattern; writers take each path as it is."""
    return _SPECIAL.search(path) is not None


def escaped(path: str) -> str:
    """The pattern that matches this path alone."""
    return _SPECIAL.sub(r"\\\g<0>", path)
