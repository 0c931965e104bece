"""How often something is tried: CI has the short form, `make campaigns` the long one."""

import os


def times(short: int, long: int) -> int:
    """The number for this run."""
    return long if os.environ.get("ORCHESTRATOR_CAMPAIGNS") else short
