"""The tests that CI draws: of those that repeat slow work, a sample by the seed.

`make test` sets ORCHESTRATOR_DRAW; pytest alone and `make campaigns` run all of them. The seed is the date
of the commit (`tests.sampling`), so that many commits together run every test. CI has a limit of time: a
machine that is slower than the reference machine gets so much smaller samples. Of the modules whose tests
start a server or a driver, it runs such a part, and the reference machine two fifths.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

from tests.machine import slowness
from tests.plugins.kinds import KIND, Kind
from tests.sampling import is_whole, sample

COUNTS = {
    "kills of writers": 4,  # drivers and executors killed while they write into a server
    "jobs on clusters": 5,  # code, definitions and errors on a real cluster: several drivers each
    "runners of clusters": 6,  # masters and nodes that are lost, refusals, ends of drivers
    "tutorials": 2,  # a page or a demonstration with all its servers
    "deaths of workers": 4,  # on each real backend
}
"""How many tests of each group the reference machine runs; the mark `drawn` has the name of the group."""
OF_MODULES = 0.4
"""The share of the modules of each kind, on a machine that is up to 2.5 times slower than the reference."""

_CLUSTERS = frozenset({"standalone-client", "standalone-cluster", "yarn", "kubernetes", "jars"})
_DATABASES = frozenset({"postgres", "mariadb"})
_SERVERS = {"kit": _CLUSTERS, "kind": _CLUSTERS, "database": _DATABASES}
"""Parameters of tests that run on several servers: CI draws one of these for each test."""

_Draw = tuple[str, int, list[list[pytest.Item]]]
"""Its name, how many the reference machine draws, and what it draws from: tests that run together."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "drawn(group): CI runs a sample of the tests of this group")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not drawn, if this is a run of CI."""
    if is_whole() or not os.environ.get("ORCHESTRATOR_DRAW"):
        return
    left_out = not_drawn(items, slowness())
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def not_drawn(items: Sequence[pytest.Item], slower: float) -> set[pytest.Item]:
    """The tests that the seed leaves out on a machine that is so many times slower than the reference."""
    left_out = set[pytest.Item]()
    # Each draws from what the one before has left.
    for draws, share in ((_groups, 1.0), (_on_servers, 1.0), (_modules, OF_MODULES)):
        left = [item for item in items if item not in left_out]
        for name, count, members in draws(left):
            drawn = sample(members, math.ceil(count * min(share, 1 / slower)), name)
            left_out.update(item for tests in members if tests not in drawn for item in tests)
    return left_out


def _groups(items: Sequence[pytest.Item]) -> Iterator[_Draw]:
    members = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        for mark in item.iter_markers("drawn"):
            members[mark.args[0]].append(item)
    for group, found in members.items():
        yield group, COUNTS[group], [[item] for item in found]


def _on_servers(items: Sequence[pytest.Item]) -> Iterator[_Draw]:
    """The tests that differ by the server alone; the name has the other parameters."""
    members = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        given = getattr(item, "callspec", None)
        if given is None or item.get_closest_marker("drawn"):
            continue
        for name, servers in _SERVERS.items():
            if (server := given.params.get(name)) in servers:
                others = given.id.replace(server, "", 1)
                members[f"{item.nodeid.partition('[')[0]} {others}"].append(item)
    for name, found in members.items():
        yield name, 1, [[item] for item in found]


def _modules(items: Sequence[pytest.Item]) -> Iterator[_Draw]:
    """The modules whose tests start something, of each kind."""
    members = defaultdict[Kind, dict[str, list[pytest.Item]]](lambda: defaultdict(list))
    for item in items:
        if item.stash[KIND] is not Kind.PURE and not item.get_closest_marker("drawn"):  # that was its draw
            members[item.stash[KIND]][item.nodeid.partition("::")[0]].append(item)
    for kind, modules in members.items():
        yield kind, len(modules), list(modules.values())
