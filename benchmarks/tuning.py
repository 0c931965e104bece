"""The controller of resources against its peers, in a simulation and with real jobs. Last line: JSON.

`simulation`: by workload and controller, over all seeds: `oom`, the runs of 60 that were out of memory, and
`allocation`, the memory that was allocated against what was needed, in which failed runs count.

`real`: by place and job: `runs` from ten times the smallest heap that works to 1.5 times it, `to_smallest` at
the end, `oom` and `reversals` of the direction while nothing changes, `oom_after_growth` of the input, `time`
with the heap at the end against that with ten times the smallest.

    python benchmarks/tuning.py [--seeds 200] [--search 300] [--real local,standalone] [--jobs NAME,...]

`--search`: choose the gains of ours and of the naive PID anew, with as many random samples for each, on seeds
that the simulation does not use.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tuning_controllers import DrElephant, Fixed, NaivePid, Ours, VpaLike
from tuning_jobs import JOBS
from tuning_real import measure_real
from tuning_workloads import WORKLOADS, Controller, Result, mean, simulate

from orchestrator.config.tuning import Gains

SEARCH_SEEDS = range(1_000_000, 1_000_040)
_PEERS = ("fixed", "dr_elephant", "vpa_like")
_WITHIN = 1.1  # of the smallest allocation of a peer: beyond it costs as much as runs out of memory
_BEYOND_COST = 50.0  # of a whole allocation, against one run out of memory in 60

CONTROLLERS: dict[str, Callable[[], Controller]] = {
    "fixed": Fixed,
    "dr_elephant": DrElephant,
    "vpa_like": VpaLike,
    "naive_pid": NaivePid,
    "ours": Ours,
    "ours_without_input": lambda: Ours(knows_input=False),
}


def measured(make: Callable[[], Controller], seeds: Sequence[int]) -> dict[str, Result]:
    """The means by workload."""
    return {name: mean([simulate(name, seed, make()) for seed in seeds]) for name in WORKLOADS}


def _cost(make: Callable[[], Controller], most: dict[str, float]) -> float:
    """The runs out of memory, and what is allocated beyond `most` by workload; of equal ones the smaller."""
    found = measured(make, SEARCH_SEEDS)
    return sum(
        each.oom + _BEYOND_COST * max(0.0, each.allocation - most[name]) + 0.1 * each.allocation
        for name, each in found.items()
    )


def _most_allocations() -> dict[str, float]:
    """What ours may allocate by workload: a tenth more than the most frugal peer."""
    found = [measured(CONTROLLERS[name], SEARCH_SEEDS) for name in _PEERS]
    return {name: _WITHIN * min(each[name].allocation for each in found) for name in WORKLOADS}


def _sample_gains(draw: random.Random) -> Gains:
    return Gains(
        spread=round(draw.uniform(2, 5), 2),
        least_margin=round(draw.uniform(0.01, 0.15), 2),
        most_margin=round(draw.uniform(0.1, 0.5), 2),
        cold_margin=round(draw.uniform(0, 0.15), 2),
        down=round(draw.uniform(0.5, 1), 2),
        dead_band=round(draw.uniform(0.04, 0.1), 2),
        idle_use=round(draw.uniform(0.25, 0.6), 2),
        window=draw.choice((14, 28, 50)),
        hold=draw.choice((14, 28)),
        prior_spread=round(draw.uniform(0.02, 0.15), 2),
        prior_runs=draw.choice((1, 2, 4, 8)),
    )


def _sample_pid(draw: random.Random) -> dict[str, float]:
    return {
        "proportional": round(draw.uniform(0.05, 1.2), 2),
        "integral": round(draw.uniform(0, 0.4), 3),
        "derivative": round(draw.uniform(0, 0.3), 2),
        "use": round(draw.uniform(0.5, 0.9), 2),
    }


def search(samples: int) -> None:
    """Print the best of random gains of both controllers, by the same cost on the same seeds."""
    most = _most_allocations()
    draw = random.Random(23)  # noqa: S311 - not for security
    choices: list[tuple[str, Callable[[], Any], Callable[[Any], Controller]]] = [
        ("ours", lambda: _sample_gains(draw), Ours),
        ("naive_pid", lambda: _sample_pid(draw), lambda gains: NaivePid(**gains)),
    ]
    for name, sample, make in choices:
        best_cost = float("inf")
        for _ in range(samples):
            gains = sample()
            if (cost := _cost(lambda gains=gains, make=make: make(gains), most)) < best_cost:
                best_cost = cost
                print(f"{name} {cost:.3f} {gains}", flush=True)


def main() -> None:
    """Simulate, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--search", type=int, default=0)
    parser.add_argument("--real", default="", help="places of the loop with real jobs: local,standalone")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    if given.search:
        search(given.search)
    results = {name: measured(make, range(given.seeds)) for name, make in CONTROLLERS.items()}
    print(f"{'':12}" + "".join(f"{name:>20}" for name in results))
    for workload in WORKLOADS:
        found = (results[name][workload] for name in results)
        print(f"{workload:12}" + "".join(f"{each.oom:12.2f} / {each.allocation:.3f}" for each in found))
    shown = {
        workload: {
            name: {"oom": round(by[workload].oom, 3), "allocation": round(by[workload].allocation, 3)}
            for name, by in results.items()
        }
        for workload in WORKLOADS
    }
    places = list(filter(None, given.real.split(",")))
    real = measure_real(places, given.jobs.split(","), given.runs) if places else {}
    print(json.dumps({"simulation": shown, "real": real}))


if __name__ == "__main__":
    main()
