"""Amounts of memory in definitions."""

import re

from spark_runner.shortened import shortened

# ASCII only: in Unicode the Kelvin sign is a k.
_WRITTEN = re.compile(r"[1-9][0-9]{0,14}[kmgt]b?", re.IGNORECASE | re.ASCII)


def checked_memory(value: str) -> str:
    """The value itself; raises ValueError unless it is empty or an amount with a unit."""
    if value and not _WRITTEN.fullmatch(value):
        message = f"{shortened(value, 100)!r} is not an amount of memory; write for example 512m or 1g"
        raise ValueError(message)
    return value
