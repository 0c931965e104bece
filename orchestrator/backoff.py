"""How long to wait after failures in a row."""

import random

_MAX_DOUBLINGS = 60  # what fails for months has a power that is no float some day
_JITTER = 0.2


def growing(first: float, longest: float, failures: int, *, factor: float = 2.0) -> float:
    """`first` seconds after one failure, `factor` times as long after each further one, `longest` at most."""
    return min(first * factor ** min(failures - 1, _MAX_DOUBLINGS), longest)


def jittered(seconds: float) -> float:
    """A delay up to 20 % shorter or longer: what failed together does not come back together."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - not for security
