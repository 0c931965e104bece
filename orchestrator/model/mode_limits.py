"""Limits of a definition whose default depends on the mode of its script."""

from orchestrator.model.definition_parts import Retry, Timeout

STREAMING = "streaming"
"""The mode of a script that runs until it is stopped."""

_RUN_SECONDS = 7_200.0  # a job that ends by itself and has not after this time hangs, most likely
_STABLE_SECONDS = 3_600.0  # a stream that ran for so long fails for a new reason, most likely


def run_limit(timeout: Timeout, mode: str) -> float:
    """The seconds that one attempt may run; 0 = no limit."""
    if timeout.run is not None:
        return timeout.run
    return 0.0 if mode == STREAMING else _RUN_SECONDS


def stall_limit(timeout: Timeout, trigger_seconds: float) -> float:
    """The seconds without progress before the warning; 0 = none. Between two triggers nothing is due."""
    return timeout.stall + trigger_seconds if timeout.stall else 0.0


def reset_after(retry: Retry, mode: str) -> float:
    """The seconds after which a running attempt clears the failures of earlier ones; 0 = never."""
    if retry.reset_after is not None:
        return retry.reset_after
    return _STABLE_SECONDS if mode == STREAMING else 0.0
