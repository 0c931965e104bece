"""What a run of a campaign tries: a sample in CI, everything in its own `make` target.

The seed is the date of the commit, so that each commit tries others, and a run of one commit can be repeated.
"""

import os
import random
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@cache
def seed() -> int:
    """ORCHESTRATOR_SEED; else the date of the commit in seconds; outside of a repository, the time of day."""
    if given := os.environ.get("ORCHESTRATOR_SEED"):
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    asked = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    os.environ["ORCHESTRATOR_SEED"] = asked.stdout.strip() or str(
        int(time.time())
    )  # for all worker processes
    return int(os.environ["ORCHESTRATOR_SEED"])


def is_whole() -> bool:
    """Whether campaigns run to their full length: ORCHESTRATOR_CAMPAIGNS is set."""
    return bool(os.environ.get("ORCHESTRATOR_CAMPAIGNS"))


def chance(name: str) -> random.Random:
    """Random numbers for the campaign `name`, the same in each process of a run."""
    return random.Random(f"{seed()} {name}")  # noqa: S311 - so that a run can be repeated


def sample(population: Sequence[T], count: int, name: str) -> list[T]:
    """`count` of these for the campaign `name`, in their order; all of them in a whole campaign."""
    if is_whole() or count >= len(population):
        return list(population)
    chosen = chance(name).sample(range(len(population)), count)
    return [population[index] for index in sorted(chosen)]


def times(short: int, long: int) -> int:
    """How often something is tried: `short` in CI, `long` in a whole campaign."""
    return long if is_whole() else short
