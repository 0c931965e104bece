"""On every backend: whenever a worker dies, user code runs once in each attempt, and the job succeeds.

The trials are the death after the submission, whose driver the next worker adopts, and one more fault on each
backend; CI draws some of them. A whole campaign tries each fault. `make trials COUNT=200` runs 200 random
trials, distributed over the backends.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.proxy import FaultProxy, ProxyLoop
from tests.chaos.trials import FAULTS, Arena, Fault, JarArena, Trial
from tests.runner_kits import REAL, open_kit
from tests.sampling import chance, sample

COUNT = int(os.environ.get("ORCHESTRATOR_TRIALS", "0"))
JARS = "jars"
"""Drivers in Java in pods: a variant of the kind `kubernetes`."""

LONGEST_S = 25.0
"""From the start of a worker to the end of its job, on a slow cluster."""

pytestmark = [pytest.mark.campaign, pytest.mark.spark, pytest.mark.timeout(300)]


def trials(kind: str) -> list[Trial]:
    name = f"trials {kind}"
    if COUNT:
        rng = chance(name)
        return [Trial.at_random(rng, LONGEST_S) for _ in range(-(-COUNT // (len(REAL) + 1)))]
    if kind == JARS:  # `kubernetes` itself has both
        return [Trial(fault) for fault in sample(FAULTS, 1, name)]
    others = [fault for fault in FAULTS if fault is not Fault.AFTER_SPAWN]
    return [Trial(fault) for fault in (Fault.AFTER_SPAWN, *sample(others, 1, name))]


def cells() -> list[Any]:
    return [
        pytest.param(kind, trial, id=f"{kind}-{number}-{trial.fault.name}")
        for kind in (*REAL, JARS)
        for number, trial in enumerate(trials(kind), 1)
    ]


@pytest.fixture
def arena(
    request: pytest.FixtureRequest, zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path, kind: str
) -> Iterator[Arena]:
    backend, arena_of = ("kubernetes", JarArena) if kind == JARS else (kind, Arena)
    with (
        open_kit(backend, request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path) as kit,
        ProxyLoop() as proxies,
        FaultProxy(proxies, zookeeper_hosts) as proxy,
    ):
        yield arena_of(kit, proxy, tmp_path)


@pytest.mark.parametrize("kind", ["local"])
@pytest.mark.usefixtures("process_mark", "judged", "pid_namespaces")
def test_user_code_runs_once_though_its_machine_is_suspended_and_another_worker_sees_no_process(
    arena: Arena, kind: str
) -> None:
    assert arena.run(Trial(Fault.SUSPENDED)) == []
    assert set(arena.kit.ledger.starts().values()) == {1}, kind


@pytest.mark.drawn("deaths of workers")
@pytest.mark.parametrize(("kind", "trial"), cells())
@pytest.mark.usefixtures("process_mark", "judged")
def test_user_code_runs_once_in_each_attempt_whenever_a_worker_dies(
    arena: Arena, kind: str, trial: Trial
) -> None:
    found, starts = arena.run(trial), arena.kit.ledger.starts()
    print(f"\n{kind}, {trial}: {starts.total()} starts, {len(found)} wrong")  # noqa: T201 - for `make trials`
    assert not found, "\n".join(found)
    assert max(starts.values()) == 1
