"""Amounts of memory as Spark writes them."""

import re

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": _MIB, "b": 1, "k": _KIB, "m": _MIB, "g": _GIB, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"(\d+)(b|[kmgtp]?)b?", re.IGNORECASE)
_WRITTEN = re.compile(r"[1-9]\d*[kmgt]b?", re.IGNORECASE)


def checked_memory(value: str) -> str:
    """The same; raises ValueError for what is no amount with a unit, or empty."""
    if value and not _WRITTEN.fullmatch(value):
        message = f"{value!r} is not an amount of memory; write for example 512m or 1g"
        raise ValueError(message)
    return value


def memory_bytes(text: str) -> int | None:
    """Bytes of an amount, MiB without a unit; None for what is none: Spark refuses it."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _UNITS[match[2].lower()]
