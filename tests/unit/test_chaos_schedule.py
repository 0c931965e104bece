from collections import defaultdict
from itertools import pairwise

import pytest

from tests.chaos.faults import (
    CutDownstream,
    CutUpstream,
    KillLeader,
    Refuse,
    Restart,
    RestartServers,
    SigCont,
    SigKill,
    SigStop,
)
from tests.chaos.schedule import Planned, Trouble, plan

ACTORS = ["a", "b", "c"]
SESSION_S = 4.0
SEEDS = range(30)


def schedule(seed: int, faults: int = 40, kinds: tuple[Trouble, ...] = tuple(Trouble)) -> tuple[Planned, ...]:
    return plan(seed, ACTORS, faults, interval_s=2, session_s=SESSION_S, kinds=kinds)


def actor_of(planned: Planned) -> str | None:
    return getattr(planned.fault, "actor", None)


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert schedule(7) == schedule(7)
    assert len({schedule(seed) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_kinds_occur_among_forty_faults_and_in_order(seed: int) -> None:
    planned = schedule(seed)
    troubles = [one for one in planned if one.fault.name in set(Trouble)]
    assert len(troubles) == 40
    assert {one.fault.name for one in troubles} == set(Trouble)
    assert [one.at for one in planned] == sorted(one.at for one in planned)
    assert planned[0].at > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stopped_or_killed_process_always_returns(seed: int) -> None:
    last: dict[object, Planned] = {}
    undone = {SigStop: SigCont, SigKill: Restart, KillLeader: RestartServers}
    for one in schedule(seed, 80):
        for trouble, undo in undone.items():
            key = (trouble, actor_of(one))
            if isinstance(one.fault, trouble):
                assert key not in last
                last[key] = one
            elif isinstance(one.fault, undo):
                begun = last.pop(key)
                assert one.at > begun.at
                if trouble is SigStop:
                    assert one.at - begun.at > SESSION_S
    assert last == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_actor_has_one_trouble_at_a_time(seed: int) -> None:
    by_actor: defaultdict[str, list[Planned]] = defaultdict(list)
    for one in schedule(seed, 80):
        if (actor := actor_of(one)) is not None:
            by_actor[actor].append(one)
    assert set(by_actor) == set(ACTORS)
    for of_actor in by_actor.values():
        for before, after in pairwise(of_actor):
            if isinstance(before.fault, Refuse | CutUpstream | CutDownstream):
                assert after.at >= before.at + before.fault.seconds
            if isinstance(before.fault, SigStop | SigKill):
                assert isinstance(after.fault, SigCont | Restart)


def test_only_the_chosen_kinds_are_dealt() -> None:
    names = {one.fault.name for one in schedule(1, kinds=(Trouble.SIGKILL, Trouble.CORRUPT))}
    assert names == {"sigkill", "restart", "corrupt"}
