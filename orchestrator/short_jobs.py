"""Whether a job is short, as far as its last runs can tell: then its JVM is started for a quick start."""

from collections.abc import Mapping, Sequence
from typing import Any

from spark_runner.attempt import AttemptState

SHORT_SECONDS = 60.0  # of a whole run; by then a JVM with both compilers has caught up
_LEAST_RUNS = 3  # one alone may have found nothing to do
_LAST_RUNS = 10


def is_short(history: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each of the last runs was short: at least three, of ten at most, the newest last.

    Runs are entries of the history; `seconds` is from the driver's start to its end. Those that failed count
    for nothing, and one long run among the others is reason enough for the usual JVM: there it loses more
    than it gains here.
    """
    durations = [run.get("seconds") for run in history if run.get("state") == AttemptState.SUCCEEDED]
    known = [seconds for seconds in durations if isinstance(seconds, int | float)][-_LAST_RUNS:]
    return len(known) >= _LEAST_RUNS and max(known) <= SHORT_SECONDS
