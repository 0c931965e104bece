"""The cases of a campaign: a sample in CI, all of them in its own `make` target.

The seed is the date of the commit: each commit tries other cases, and a run of one commit can be repeated.
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
    """ORCHESTRATOR_SEED; else the date of the commit in seconds; without a repository, the current time."""
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
    """A sample of `count` for the campaign `name`, in order; all of them in a whole campaign."""
    if is_whole() or count >= len(population):
        return list(population)
    chosen = chance(name).sample(range(len(population)), count)
    return [population[index] for index in sorted(chosen)]


def times(short: int, long: int) -> int:
    """A number of repetitions: `short` in CI, `long` in a whole campaign."""
    return long if is_whole() else short
