"""Paths to values in JSON, such as `data.items` or `data.-1.id`."""

from typing import Any


def value_at(document: Any, path: str) -> Any:
    """The value at a path; None without one."""
    for part in filter(None, path.split(".")):
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list) and part.removeprefix("-").isdecimal():
            document = next(iter(document[int(part) :]), None)
        else:
            return None
    return document
