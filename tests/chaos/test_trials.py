"""On every backend: whenever a worker dies, user code runs once in each attempt, and the job ends well.

`make trials COUNT=200` runs so many at random, shared out among the backends.
"""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.proxy import FaultProxy, ProxyLoop
from tests.chaos.trials import IN_CI, Arena, JarArena, Trial
from tests.runner_kits import REAL, open_kit

COUNT = int(os.environ.get("ORCHESTRATOR_TRIALS", "0"))
SEED = int(os.environ.get("ORCHESTRATOR_SEED", "6"))
JARS = "jars"
"""Drivers in Java, which are pods: the kind `kubernetes` once more."""

LONGEST_S = 25.0
"""From the start of a worker to the end of its job, on a slow cluster."""

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600 if not COUNT else 60 * COUNT)]


def trials(kind: str) -> list[Trial]:
    if not COUNT:
        return [Trial(fault) for fault in IN_CI]
    rng = random.Random(f"{SEED} {kind}")  # noqa: S311 - so that a run can be had again
    return [Trial.at_random(rng, LONGEST_S) for _ in range(-(-COUNT // (len(REAL) + 1)))]


@pytest.mark.parametrize("kind", [*REAL, JARS])
@pytest.mark.usefixtures("process_mark")
def test_user_code_runs_once_in_each_attempt_whenever_a_worker_dies(
    request: pytest.FixtureRequest, zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path, kind: str
) -> None:
    counts, wrong = Counter[str](), list[str]()
    place, arena_of = ("kubernetes", JarArena) if kind == JARS else (kind, Arena)
    with (
        open_kit(place, request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path) as kit,
        ProxyLoop() as proxies,
        FaultProxy(proxies, zookeeper_hosts) as proxy,
    ):
        arena = arena_of(kit, proxy, tmp_path)
        for number, trial in enumerate(trials(kind), 1):
            found = arena.run(trial)
            counts[str(trial.fault)] += 1
            wrong += [f"trial {number}, {trial}: {words}" for words in found]
        starts = kit.ledger.starts()
    told = ", ".join(f"{count} {fault}" for fault, count in sorted(counts.items()))
    words = f"{counts.total()} trials ({told}); {starts.total()} starts, {len(wrong)} wrong"
    print(f"\n{kind}, seed {SEED}: {words}")  # noqa: T201 - the counts are what a campaign is for
    assert not wrong, "\n".join(wrong)
    assert max(starts.values()) == 1
