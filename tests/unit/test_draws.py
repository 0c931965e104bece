"""The tests that CI draws."""

from typing import Any

import pytest

from tests import sampling
from tests.plugins.draws import COUNTS, not_drawn
from tests.plugins.kinds import KIND, Kind

SEEDS = 100
GROUP = "kills of writers"


class StandInItem:
    """What the draw asks of a test: its module and name, its parameters, its group and its kind."""

    def __init__(
        self,
        name: str,
        server: str = "",
        *,
        group: str = "",
        number: int = 0,
        kind: Kind = Kind.PURE,
        module: str = "test_x",
    ) -> None:
        self.stash = {KIND: kind}
        ids = "-".join(filter(None, (server, str(number))))
        self.nodeid = f"tests/{module}.py::{name}[{ids}]"
        if server or number:
            self.callspec = type("CallSpec", (), {"params": {"database": server, "n": number}, "id": ids})()
        self._marks = [pytest.mark.drawn(group).mark] if group else []

    def iter_markers(self, name: str) -> list[Any]:
        return [mark for mark in self._marks if mark.name == name]

    def get_closest_marker(self, name: str) -> Any:
        return next(iter(self.iter_markers(name)), None)


def left(monkeypatch: pytest.MonkeyPatch, seed: int, items: Any, slower: float = 1.0) -> list[str]:
    monkeypatch.delenv("ORCHESTRATOR_CAMPAIGNS", raising=False)
    monkeypatch.setattr(sampling, "seed", lambda: seed)
    out = not_drawn(items, slower)
    return [item.nodeid for item in items if item not in out]


def test_each_test_of_a_group_is_drawn_by_some_seed_and_each_seed_draws_as_many_as_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = [StandInItem(f"test_{number}", group=GROUP) for number in range(3 * COUNTS[GROUP])]
    others = [StandInItem("test_that_is_in_no_group")]
    found = [left(monkeypatch, seed, [*items, *others]) for seed in range(SEEDS)]
    assert {len(each) for each in found} == {COUNTS[GROUP] + 1}
    assert {name for each in found for name in each} == {item.nodeid for item in (*items, *others)}


def test_a_test_on_several_servers_runs_on_one_of_them_with_each_of_its_other_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = ("postgres", "mariadb")
    items = [StandInItem("test_rows", server, number=number) for server in servers for number in (1, 2)]
    found = [left(monkeypatch, seed, items) for seed in range(SEEDS)]
    numbers = {tuple(sorted(name.rstrip("]").rpartition("-")[2] for name in each)) for each in found}
    assert numbers == {("1", "2")}
    assert len({tuple(each) for each in found}) == 4, "each number draws its server by itself"


@pytest.mark.parametrize(
    ("kind", "slower", "count"),
    [
        (Kind.SPARK, 1.0, 3),
        (Kind.SPARK, 2.0, 3),
        (Kind.SPARK, 3.0, 2),
        (Kind.YARN, 9.0, 1),
        (Kind.ZOOKEEPER, 9.0, 1),
        (Kind.PURE, 9.0, 6),
    ],
)
def test_a_slower_machine_runs_fewer_of_the_modules_that_start_something_each_with_all_its_tests(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, slower: float, count: int
) -> None:
    modules = [f"test_{number}" for number in range(6)]
    items = [
        StandInItem("test_values", number=number, kind=kind, module=module)
        for module in modules
        for number in (1, 2)
    ]
    found = [left(monkeypatch, seed, items, slower) for seed in range(SEEDS)]
    assert {len(each) for each in found} == {2 * count}
    assert {len({name.partition("::")[0] for name in each}) for each in found} == {count}
    assert {name for each in found for name in each} == {item.nodeid for item in items}


def test_modules_are_drawn_for_each_kind_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        StandInItem("test_x", kind=kind, module=f"test_{kind.mark}_{number}")
        for kind in (Kind.KAFKA, Kind.KUBERNETES)
        for number in range(4)
    ]
    found = [left(monkeypatch, seed, items, 4.0) for seed in range(SEEDS)]
    assert {tuple(name.split("_")[1] for name in each) for each in found} == {("kafka", "kubernetes")}


def test_a_slower_machine_runs_fewer_tests_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [StandInItem(f"test_{number}", group=GROUP) for number in range(20)]
    assert len(left(monkeypatch, 1, items, 2.0)) == COUNTS[GROUP] / 2


def test_one_seed_draws_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = {
        tuple(left(monkeypatch, 7, [StandInItem(f"test_{number}", group=GROUP) for number in range(20)]))
        for _ in range(3)
    }
    assert len(draws) == 1


def test_a_whole_campaign_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATOR_CAMPAIGNS", "1")
    items: Any = [StandInItem(f"test_{number}", group=GROUP) for number in range(20)]
    assert not_drawn(items, 9.0) == set()
