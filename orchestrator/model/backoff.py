"""Delays after failures in a row: exponential backoff and jitter."""

import random

_MAX_DOUBLINGS = 60  # after months of failures the power would overflow a float
_JITTER = 0.2


def growing(first: float, longest: float, failures: int, *, factor: float = 2.0) -> float:
    """The delay: `first` seconds after one failure, times `factor` after each more, at most `longest`."""
    return min(first * factor ** min(failures - 1, _MAX_DOUBLINGS), longest)


def jittered(seconds: float) -> float:
    """The delay up to 20 % shorter or longer, so that tasks that failed together do not retry together."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - not for security
