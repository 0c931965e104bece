"""`python -m tests.chaos --minutes 120`: campaigns in sequence, each with its own seed."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.campaign import Campaign, run


def main() -> int:
    """Run campaigns until the time is over; on a violation keep its folder and return 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) % 1_000_000, help="of the first campaign"
    )
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--actors", type=int, default=8)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=160, help="of one campaign")
    arguments = parser.parse_args()
    deadline, seed = time.monotonic() + 60 * arguments.minutes, arguments.seed
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"chaos-{seed}-"))
        campaign = Campaign(seed, arguments.items, arguments.actors, arguments.faults, arguments.seconds)
        outcome = run(campaign, folder)
        print(f"seed {seed}: {outcome.applied} faults\n{outcome.report}", flush=True)  # noqa: T201 - its result
        if not outcome.ok:
            print(f"{outcome.stalled} {outcome.failures}; everything is in {folder}")  # noqa: T201 - likewise
            return 1
        shutil.rmtree(folder)
        seed += 1
        if time.monotonic() >= deadline:
            return 0


if __name__ == "__main__":
    sys.exit(main())
