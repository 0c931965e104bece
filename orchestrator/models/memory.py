"""Amounts of memory as definitions write them."""

import re

_WRITTEN = re.compile(r"[1-9]\d*[kmgt]b?", re.IGNORECASE)


def checked_memory(value: str) -> str:
    """The same; raises ValueError for what is no amount with a unit, or empty."""
    if value and not _WRITTEN.fullmatch(value):
        message = f"{value!r} is not an amount of memory; write for example 512m or 1g"
        raise ValueError(message)
    return value
