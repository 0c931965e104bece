"""Exchanges two folders of a local file system in one step."""

import ctypes
from typing import Any

_HERE = -100  # AT_FDCWD: paths are those of this process
_EXCHANGE = 2  # RENAME_EXCHANGE


def exchange(one: str, other: str) -> bool:
    """Give each of two folders the name of the other; False where the system or the file system cannot."""
    rename: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # Linux, glibc 2.28
    return rename is not None and rename(_HERE, one.encode(), _HERE, other.encode(), _EXCHANGE) == 0
