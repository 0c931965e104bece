"""Waits in tests: for a condition, never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02


def wait_until(condition: Callable[[], T | None], timeout: float, what: str) -> T:
    """Return the first true value of `condition`; fail with `what` after `timeout` seconds.

    Exceptions of the condition are raised: a condition that may fail must handle them.
    """
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what} (last value: {value!r})")
        time.sleep(POLL_S)
    return value
