"""The workloads of the simulation in `benchmarks/tuning.py`; sizes in MiB, one list of runs for each seed."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.tuning.demand import Use
from orchestrator.tuning.law import Bounds

RUNS = 60
NEED = 3072.0  # MiB, of a run of the usual size
START = 8192.0
BOUNDS = Bounds(512, 65_536, 64)
WORKLOADS = ("steady", "noisy", "drift", "step", "weekly", "heavy_tail", "garbage")

_GARBAGE, _BASE = 0.063, 0.937  # peak = c + alpha * allocated, as measured with one query of Spark
_TAIL = 0.05  # of the runs
_MOST_RETRIES = 8


@dataclass(frozen=True, slots=True)
class Work:
    """One run: the memory without which it fails, and how much it reads, known with some noise."""

    need: float
    input: float


def runs_of(workload: str, seed: int) -> Iterator[Work]:
    """The runs of a workload, the same for each controller."""
    draw = random.Random(f"{workload}/{seed}")  # noqa: S311 - not for security
    noise = {"steady": 0.02, "noisy": 0.12, "garbage": 0.02}.get(workload, 0.05)
    for run in range(RUNS):
        size, surprise = 1.0, 1.0
        match workload:
            case "drift":
                size = 1.01**run
            case "step":
                size = 1.8 if run >= RUNS // 2 else 1.0
            case "weekly":
                size = 1 + 0.35 * math.sin(2 * math.pi * run / 7)
            case "heavy_tail":  # skew, of which the size of the input says nothing
                surprise = 1.6 if draw.random() < _TAIL else 1.0
        need = NEED * size * surprise * math.exp(draw.gauss(0, noise))
        yield Work(need, size * math.exp(draw.gauss(0, 0.05)))


def peak_of(workload: str, need: float, allocated: float) -> float:
    """The peak that Spark measures, of a run that has what it needs."""
    return _BASE * need + _GARBAGE * allocated if workload == "garbage" else need


class Controller(Protocol):
    """Chooses the memory of each run."""

    def allocate(self, known_input: float, /) -> float:
        """The memory of the next run."""

    def retry(self, allocated: float) -> float:
        """The memory of a further attempt, after one that was out of memory."""

    def saw(self, use: Use) -> None:
        """Take note of a run, also of one that was out of memory."""


@dataclass(frozen=True, slots=True)
class Result:
    """Runs that were out of memory, and what was allocated against what was needed; retries count in it."""

    oom: float
    allocation: float


def simulate(workload: str, seed: int, controller: Controller) -> Result:
    """All runs of a workload."""
    oom, allocated_total, needed_total = 0, 0.0, 0.0
    for work in runs_of(workload, seed):
        allocated = controller.allocate(work.input)
        for _ in range(_MOST_RETRIES):
            if allocated >= work.need:
                break
            oom += 1
            allocated_total += allocated
            controller.saw(Use(allocated, allocated, is_short=True, input=work.input))
            allocated = controller.retry(allocated)
        allocated_total += allocated
        needed_total += work.need
        peak = peak_of(workload, work.need, allocated)
        controller.saw(Use(allocated, min(peak, allocated), input=work.input))
    return Result(oom, allocated_total / needed_total)


def mean(results: Sequence[Result]) -> Result:
    """The mean of the results of several seeds."""
    number = len(results)
    return Result(
        sum(each.oom for each in results) / number, sum(each.allocation for each in results) / number
    )
