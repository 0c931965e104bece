"""The kind of each test, by the processes that it starts: a mark to select it, and its order in a run."""

import itertools
from collections.abc import Generator, Iterator, Sequence
from enum import StrEnum

import pytest


class Kind(StrEnum):
    """The most expensive thing that a test starts; the mark is the name of the member in lower case."""

    PURE = "pure"
    ZOOKEEPER = "ZooKeeper"
    ELASTICSEARCH = "Elasticsearch"
    KAFKA = "Kafka"
    SPARK = "local Spark"
    STANDALONE = "standalone"
    YARN = "YARN"
    KUBERNETES = "Kubernetes"
    CAMPAIGN = "campaign"

    @property
    def mark(self) -> str:
        return self.name.lower()


KIND = pytest.StashKey[Kind]()

_FIXTURES = {
    "zookeeper_hosts": Kind.ZOOKEEPER,
    "shell": Kind.ZOOKEEPER,  # its commands start one for themselves
    "elasticsearch_url": Kind.ELASTICSEARCH,
    "kafka": Kind.KAFKA,
    "local_spark": Kind.SPARK,
    "warm": Kind.SPARK,
    "standalone": Kind.STANDALONE,
    "yarn": Kind.YARN,
    "yarn_pair": Kind.YARN,
    "kubernetes": Kind.KUBERNETES,
}
_KITS = {  # of `tests.runner_kits`, which request their servers at run time
    "local": Kind.SPARK,
    "warm": Kind.SPARK,
    "standalone-client": Kind.STANDALONE,
    "standalone-cluster": Kind.STANDALONE,
    "yarn": Kind.YARN,
    "kubernetes": Kind.KUBERNETES,
    "pods": Kind.KUBERNETES,
    "jars": Kind.KUBERNETES,
}
_KIT_PARAMETERS = ("kit", "kind")

# One worker process runs all tests of such a server, so that a run starts the server once.
_GROUPS = {
    Kind.KUBERNETES: "kubernetes",
    Kind.YARN: "yarn and standalone",  # two clusters at a time leave processors for others
    Kind.STANDALONE: "yarn and standalone",
    Kind.ELASTICSEARCH: "elasticsearch",
    Kind.KAFKA: "kafka",
}
_WARM = "warm"  # the fixture and the group of a server that all its tests share
_LOCAL_SPARK = "local_spark"  # a JVM for each worker process: its tests are too many for one
_HEAVY = {Kind.SPARK: 5.0, Kind.CAMPAIGN: 8.0}
_LIGHT = {Kind.PURE: 0.05, Kind.ZOOKEEPER: 0.5}
"""Seconds of a test of each kind: the first kinds compute, the others mostly wait."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    config.addinivalue_line("markers", "xdist_group: as pytest-xdist has it, which may not be loaded")
    for kind in Kind:
        config.addinivalue_line(
            "markers", f"{kind.mark}: {kind} is the most expensive thing that a test starts"
        )


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before `-m` selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Give each test its kind and its group, and run long ones first."""
    for item in items:
        kinds = sorted(_kinds(item), key=list(Kind).index)
        item.stash[KIND] = kinds[-1]
        item.user_properties.append(("kind", str(kinds[-1])))
        for kind in kinds[1:] or kinds:
            if item.get_closest_marker(kind.mark) is None:
                item.add_marker(kind.mark)
        if group := _group(item, kinds):
            item.add_marker(pytest.mark.xdist_group(group))
    ordered = _in_order(items)
    assert len(ordered) == len(items)
    items[:] = ordered
    yield
    if config.getoption(
        "loadgroup", default=False
    ):  # without groups a run would start each server many times
        assert all("@" in item.nodeid for item in items if item.get_closest_marker("xdist_group"))


def _kinds(item: pytest.Item) -> set[Kind]:
    return {Kind.PURE, *_marked(item), *_started(item)}


def _marked(item: pytest.Item) -> Iterator[Kind]:
    yield from (kind for kind in Kind if item.get_closest_marker(kind.mark))


def _started(item: pytest.Item) -> Iterator[Kind]:
    names = _fixtures(item)
    yield from (kind for name, kind in _FIXTURES.items() if name in names)
    given = getattr(item, "callspec", None)
    if given is not None:
        yield from (_KITS[value] for name in _KIT_PARAMETERS if (value := given.params.get(name)) in _KITS)


def _group(item: pytest.Item, kinds: list[Kind]) -> str | None:
    """The tests of a group run in sequence in one worker process; None = anywhere."""
    if servers := [kind for kind in _GROUPS if kind in kinds]:
        return _GROUPS[servers[0]]
    if _WARM in _fixtures(item):
        return _WARM
    if kinds == [Kind.PURE] or _LOCAL_SPARK in _fixtures(item) or _shares_with_its_module(item):
        return item.nodeid.partition("::")[0]
    return None


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return getattr(item, "fixturenames", ())


def _shares_with_its_module(item: pytest.Item) -> bool:
    known = getattr(item, "_fixtureinfo", None)
    scopes = {} if known is None else known.name2fixturedefs
    return any(definition.scope == "module" for found in scopes.values() for definition in found)


def _in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """The groups of servers first, as they are the longest; then tests that compute among tests that wait.

    In a group, tests without drivers come first, while the servers of all groups start. The modules of the
    local Spark follow the groups.
    """
    longest = [*dict.fromkeys(_GROUPS.values()), _WARM]
    groups = {item: _name_of_group(item) for item in items}
    first = [item for item in items if groups[item] in longest or _LOCAL_SPARK in _fixtures(item)]
    first.sort(
        key=lambda item: (
            longest.index(groups[item]) if groups[item] in longest else len(longest),
            -list(Kind).index(item.stash[KIND]),
            item.get_closest_marker(Kind.SPARK.mark) is not None,
        )
    )
    rest = set(items).difference(first)
    places: dict[pytest.Item, float] = {}
    for seconds in (_HEAVY, _LIGHT):
        mine = [item for item in items if item in rest and item.stash[KIND] in seconds]
        mine.sort(key=lambda item: -seconds[item.stash[KIND]])
        taken = list(itertools.accumulate(seconds[item.stash[KIND]] for item in mine))
        places |= {item: until / taken[-1] for item, until in zip(mine, taken, strict=True)}
    return first + sorted(places, key=lambda item: places[item])


def _name_of_group(item: pytest.Item) -> str:
    found = item.get_closest_marker("xdist_group")
    return "" if found is None else str(found.args[0])
