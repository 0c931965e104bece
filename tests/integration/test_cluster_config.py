"""The limits in ZooKeeper that a worker applies, whoever changes them and whatever the node contains."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from loguru import logger

from orchestrator.config import live_limits
from orchestrator.config.live_limits import ClusterConfig
from orchestrator.model.errors import ConfigUnreadable, SettingsError
from orchestrator.model.limits import Limits
from orchestrator.model.paths import Nodes
from queues.model.operations import Set
from queues.session import Session
from queues.store.commit import commit
from tests.queues_support import Open, expire
from tests.waiting import wait_until

HOUR = 3600.0
SOON_S = 10
"""Less than the 15 s of the timed read, so that only the watch can be the reason."""

EFFECTIVE_WITHIN_S = 2

OpenConfig = Callable[..., ClusterConfig]


@pytest.fixture
def session(open_queues: Open) -> Session:
    return open_queues().session


@pytest.fixture
def node(zookeeper_root: str) -> str:
    return Nodes(zookeeper_root).config


@pytest.fixture
def open_config(open_queues: Open, zookeeper_root: str) -> Iterator[OpenConfig]:
    """Make a configuration on another session; `follow` starts it."""
    started: list[ClusterConfig] = []

    def make(*, follow: bool = True, session: Session | None = None, **defaults: Any) -> ClusterConfig:
        config = ClusterConfig(
            session or open_queues().session, Nodes(zookeeper_root), Limits.model_validate(defaults)
        )
        if follow:
            config.start()
            started.append(config)
        return config

    yield make
    for config in started:
        config.stop()


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    lines: list[str] = []
    sink = logger.add(lines.append, level="WARNING", format="{message}")
    yield lines
    logger.remove(sink)


def write(session: Session, node: str, data: bytes) -> None:
    """Data as an operator types it into zkCli."""
    commit(session, [Set(node, data, -1)])


# ---------------------------------------------------------------------- valid limits
def test_where_nothing_is_set_a_worker_goes_by_its_own_settings(open_config: OpenConfig) -> None:
    assert open_config(retention="2h").limits == Limits(retention=2 * HOUR)


def test_a_stored_limit_overrides_a_workers_own_until_it_is_removed(open_config: OpenConfig) -> None:
    operator = open_config(follow=False)
    operator.change(retention="3h", warn_after=7)
    worker = open_config(retention="2h")
    assert worker.limits == Limits(retention=3 * HOUR, warn_after=7)
    operator.change(retention=None)
    wait_until(lambda: worker.limits.retention == 2 * HOUR, SOON_S, "its own retention holds again")
    assert worker.limits.warn_after == 7


def test_a_change_is_effective_within_two_seconds_in_another_session(open_config: OpenConfig) -> None:
    operator, worker, took = open_config(follow=False), open_config(), []
    for count in range(1, 6):
        began = time.monotonic()
        operator.change(retention_count=count)
        wait_until(lambda count=count: worker.limits.retention_count == count, SOON_S, "it is known")  # type: ignore[misc] # mypy cannot type the default of a lambda
        took.append(time.monotonic() - began)
    assert min(took) < EFFECTIVE_WITHIN_S, took


def test_listeners_of_the_limits_are_called_only_when_effective_limits_change(
    open_config: OpenConfig,
) -> None:
    operator, worker, seen = open_config(follow=False), open_config(warn_after=4), list[Limits]()
    worker.on_change(lambda: seen.append(worker.limits))
    operator.change(warn_after=4)  # the default
    operator.change(retention="3h")
    wait_until(lambda: seen, SOON_S, "it is woken")
    worker._look()  # noqa: SLF001 - its read every 15 s
    assert seen == [Limits(warn_after=4, retention=3 * HOUR)]


def test_a_node_that_is_made_later_is_followed(open_config: OpenConfig, session: Session, node: str) -> None:
    worker = open_config()
    session.ensure_path(node)
    write(session, node, b'{"values": {"handler_errors": 9}}')
    wait_until(lambda: worker.limits.handler_errors == 9, SOON_S, "it is known")


def test_a_change_is_followed_after_the_session_was_lost(open_config: OpenConfig, open_queues: Open) -> None:
    operator, mine = open_config(follow=False), open_queues().session
    operator.change(warn_after=4)
    worker = open_config(session=mine)
    expire(mine)  # and the watch with it
    operator.change(warn_after=5)
    wait_until(lambda: worker.limits.warn_after == 5, SOON_S, "it is known")


@pytest.fixture
def unwatched(open_queues: Open, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session whose watches are all lost."""
    session = open_queues().session
    get = session.get
    monkeypatch.setattr(session, "get", lambda path, _wake=None: get(path))
    return session


def test_a_change_that_was_missed_is_found_with_a_new_connection(
    open_config: OpenConfig, unwatched: Session
) -> None:
    operator, worker = open_config(follow=False), open_config(session=unwatched)
    operator.change(warn_after=5)
    expire(unwatched)
    wait_until(lambda: worker.limits.warn_after == 5, SOON_S, "it is known")


def test_changes_whose_watches_were_lost_are_found_by_the_timed_look(
    open_config: OpenConfig, unwatched: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_limits, "_LOOK_AGAIN_SECONDS", 0.1)
    operator, worker = open_config(follow=False), open_config(session=unwatched)
    for count in (5, 6):
        operator.change(warn_after=count)
        wait_until(lambda count=count: worker.limits.warn_after == count, SOON_S, "it is known")  # type: ignore[misc] # mypy cannot type the default of a lambda


# ---------------------------------------------------------------------- invalid limits
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"retention": "1s"}, "'retention'"),
        ({"handler_errors": 101}, "'handler_errors'"),
        ({"cpu_pressure_limit": -1}, "'cpu_pressure_limit'"),
        ({"warn_after": 5, "retention": "soon"}, "not a duration"),
        ({"retentoin": "3d"}, "did you mean 'retention'"),
        ({"retentoin": None}, "did you mean 'retention'"),
    ],
    ids=str,
)
def test_a_wrong_change_is_refused_and_nothing_is_changed(
    open_config: OpenConfig, change: dict[str, Any], words: str
) -> None:
    config = open_config(follow=False)
    config.change(retention="3h")
    before = config.read()
    with pytest.raises(SettingsError, match=words):
        config.change(**change)
    assert config.read() == before


BROKEN = [
    b"\xff",
    b"[]",
    b"no JSON",
    b'{"retention": "3d"}',
    b'{"values": {"retention": "1s"}}',
    b'{"values": {"retentoin": "3d"}}',
    b'{"values": {"warn_after": 9, "cpu_pressure_limit": NaN}}',
    b'{"values": []}',
    b'{"values": {}, "changed": [1]}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("data", BROKEN, ids=lambda data: repr(data[:50]))
def test_unreadable_limits_are_reported_once_and_the_last_good_ones_stay(
    open_config: OpenConfig, session: Session, node: str, data: bytes, warnings: list[str]
) -> None:
    worker = open_config()
    open_config(follow=False).change(warn_after=4)
    wait_until(lambda: worker.limits.warn_after == 4, SOON_S, "it is known")
    write(session, node, data)
    wait_until(lambda: warnings, SOON_S, "the error is reported")
    for _ in range(3):
        worker._look()  # noqa: SLF001 - its read every 15 s
    assert worker.limits.warn_after == 4
    assert len(warnings) == 1
    assert f"version 2 of {node} is not a valid configuration" in warnings[0]
    write(session, node, data)  # another version, also invalid
    wait_until(lambda: len(warnings) == 2, SOON_S, "that is reported too")
    write(session, node, b'{"values": {"warn_after": "6"}}')
    wait_until(lambda: worker.limits.warn_after == 6, SOON_S, "after the repair it is followed again")


def test_a_worker_that_starts_on_what_cannot_be_read_goes_by_its_own_settings(
    open_config: OpenConfig, session: Session, node: str, warnings: list[str]
) -> None:
    session.ensure_path(node)
    write(session, node, b"no JSON")
    assert open_config(retention="2h").limits == Limits(retention=2 * HOUR)
    assert len(warnings) == 1


def test_a_change_of_unreadable_limits_is_refused_and_the_error_says_how_to_repair_them(
    open_config: OpenConfig, session: Session, node: str
) -> None:
    session.ensure_path(node)
    write(session, node, b"no JSON")
    with pytest.raises(ConfigUnreadable, match=f"zkcli set {node} {{}}"):
        open_config(follow=False).change(warn_after=5)
    found = session.get(node)
    assert found is not None
    assert found[0] == b"no JSON"
    write(session, node, b"{}")
    assert open_config(follow=False).change(warn_after=5).warn_after == 5


# ---------------------------------------------------------------------- versions
def test_two_who_change_different_limits_at_once_lose_neither(
    open_config: OpenConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_config(follow=False), open_config(follow=False)
    read, between = first.read, list[Limits]()

    def read_then_the_other() -> object:
        stored = read()
        if not between:
            between.append(second.change(warn_after=9))
        return stored

    monkeypatch.setattr(first, "read", read_then_the_other)
    assert first.change(retention="3h") == Limits(retention=3 * HOUR, warn_after=9)
    assert second.read().values == {"retention": 3 * HOUR, "warn_after": 9}
    assert [change.after for change in second.read().changes] == [{"warn_after": 9}, {"retention": 3 * HOUR}]


def test_a_change_that_changes_nothing_makes_no_version(open_config: OpenConfig) -> None:
    config = open_config(follow=False)
    config.change(retention="3h")
    before = config.read()
    assert config.change(retention=3 * HOUR, cpu_pressure_limit=None) == Limits(retention=3 * HOUR)
    assert config.read() == before


def test_each_change_is_kept_with_its_version_and_who_made_it(open_config: OpenConfig) -> None:
    config = open_config(follow=False)
    config.change(retention="3h")
    config.change(retention="4h", memory_guard=False)
    config.change(retention=None)
    stored = config.read()
    assert [(change.version, change.before, change.after) for change in stored.changes] == [
        (1, {"retention": None}, {"retention": 3 * HOUR}),
        (2, {"retention": 3 * HOUR, "memory_guard": None}, {"retention": 4 * HOUR, "memory_guard": False}),
        (3, {"retention": 4 * HOUR}, {"retention": None}),
    ]
    assert stored.version == 3
    assert all(change.by == "ip:127.0.0.1" and change.at.endswith("Z") for change in stored.changes)


def test_the_last_twenty_changes_are_kept(open_config: OpenConfig) -> None:
    config = open_config(follow=False)
    for count in range(1, 26):
        config.change(retention_count=count)
    assert [change.version for change in config.read().changes] == list(range(6, 26))


def test_the_node_can_be_read_with_zkcli(open_config: OpenConfig, session: Session, node: str) -> None:
    open_config(follow=False).change(retention="3h")
    found = session.get(node)
    assert found is not None
    document = json.loads(found[0])
    assert document["values"] == {"retention": 3 * HOUR}
    assert [change["after"] for change in document["changed"]] == [{"retention": 3 * HOUR}]
