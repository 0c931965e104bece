"""Amounts of memory as definitions write them."""

import re

from spark_runner.shortened import shortened

# ASCII, as the Kelvin sign is a k in Unicode.
_WRITTEN = re.compile(r"[1-9][0-9]{0,14}[kmgt]b?", re.IGNORECASE | re.ASCII)


def checked_memory(value: str) -> str:
    """The same; raises ValueError for what is no amount with a unit, or empty."""
    if value and not _WRITTEN.fullmatch(value):
        message = f"{shortened(value, 100)!r} is not an amount of memory; write for example 512m or 1g"
        raise ValueError(message)
    return value
