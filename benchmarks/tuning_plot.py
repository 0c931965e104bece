"""Draws one seed of some workloads of the simulation: what runs needed, and what ours and a peer gave them.

python benchmarks/tuning_plot.py [--seed 7] [--folder docs/tuning]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tuning_controllers import DrElephant, Ours, VpaLike
from tuning_workloads import Controller, Work, peak_of, runs_of

from orchestrator.cli.tuning.drawing import drawn
from orchestrator.cli.tuning.panels import Panel, Plot, Series, Style
from orchestrator.tuning.demand import Use

PEERS = {"step": VpaLike, "weekly": VpaLike, "noisy": DrElephant, "heavy_tail": VpaLike}
NAMES = {VpaLike: "VPA-like", DrElephant: "Dr. Elephant"}
_MOST_ATTEMPTS = 8


def given(workload: str, works: list[Work], controller: Controller) -> tuple[list[float], list[int]]:
    """What each run got at last, and how often it was out of memory before."""
    amounts, failures = list[float](), list[int]()
    for work in works:
        allocated, failed = controller.allocate(work.input), 0
        while allocated < work.need and failed < _MOST_ATTEMPTS:
            failed += 1
            controller.saw(Use(allocated, allocated, is_short=True, input=work.input))
            allocated = controller.retry(allocated)
        peak = min(peak_of(workload, work.need, allocated), allocated)
        controller.saw(Use(allocated, peak, input=work.input))
        amounts.append(allocated)
        failures.append(failed)
    return amounts, failures


def plot(workload: str, seed: int) -> Plot:
    """The plot of one workload."""
    works, peer = list(runs_of(workload, seed)), PEERS[workload]
    ours, our_failures = given(workload, works, Ours())
    its, its_failures = given(workload, works, peer())
    name = NAMES[peer]
    rows = [("!", our_failures, "ours was out of memory"), ("x", its_failures, f"{name} was out of memory")]
    rows = [each for each in rows if any(each[1])]
    series = [
        Series("ours", Style.STEPS, ours),
        Series(name, Style.DASHES, its),
        Series("needed", Style.DOTS, [work.need for work in works]),
    ]
    signs = ["".join(sign if failed else " " for failed in failures) for sign, failures, _ in rows]
    return Plot(
        f"{workload}: attempts out of memory: ours {sum(our_failures)}, {name} {sum(its_failures)}",
        [Panel("memory in MiB, logarithmic", series, signs, by_doublings=True)],
        [str(number) for number, _ in enumerate(works, 1)],
        [(sign, meaning) for sign, _, meaning in rows],
    )


def main() -> None:
    """Write one file for each workload."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "docs" / "tuning")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for workload in PEERS:
        file = chosen.folder / f"{workload}.svg"
        file.write_text(drawn(plot(workload, chosen.seed)), encoding="utf-8")
        print(f"{file.name}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
