"""Predicts from its last runs whether a job is short: then its JVM is tuned for a quick start."""

from collections.abc import Mapping, Sequence
from typing import Any

from spark_runner.attempt import AttemptState

SHORT_SECONDS = 60.0  # of a whole run; after that a JVM with both compilers is as fast
_LEAST_RUNS = 3  # a single run may have had nothing to do
_LAST_RUNS = 10


def is_short(history: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each of the last ten runs was short, and there are at least three; newest last.

    Runs are entries of the history; `seconds` is from the start of the driver to its end. Failed runs do not
    count. One long run suffices for the usual JVM: a long run loses more than short ones gain.
    """
    durations = [run.get("seconds") for run in history if run.get("state") == AttemptState.SUCCEEDED]
    known = [seconds for seconds in durations if isinstance(seconds, int | float)][-_LAST_RUNS:]
    return len(known) >= _LEAST_RUNS and max(known) <= SHORT_SECONDS
