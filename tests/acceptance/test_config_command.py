"""`orchestrator config`: settings and their origins, and limits that change at run time."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.live_limits import ClusterConfig
from orchestrator.model.paths import Nodes
from queues.queue_set import QueueSet
from queues.session import Session, SessionSettings
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Shell, assert_no_traceback
from tests.queues_support import Open
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

SOON_S = 10
"""Shorter than any polling interval: a change seen by then came by a watch."""

EFFECTIVE_WITHIN_S = 2
NOWHERE = {"ZOOKEEPER_HOSTS": "127.0.0.1:1", "ORCHESTRATOR_CONNECT_TIMEOUT": "1s"}
LIMITS = (
    "retention",
    "retention_count",
    "warn_after",
    "handler_errors",
    "max_pools",
    "cpu_pressure_limit",
    "memory_pressure_limit",
    "memory_guard",
)


@pytest.fixture
def worker(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[ClusterConfig]:
    """The limits as a worker in another process sees them."""
    with Session(SessionSettings(zookeeper_hosts)) as session:
        config = ClusterConfig(session, Nodes(zookeeper_root))
        config.start()
        yield config
        config.stop()


@pytest.fixture
def queues(open_queues: Open) -> QueueSet:
    """The queues of the shell's root, with the pool `default`."""
    return open_queues()


def shown(shell: Shell, *options: str) -> dict[str, dict[str, Any]]:
    rows = shell.type("config", "show", "-o", "json", *options).json()
    assert len({row["name"] for row in rows}) == len(rows), "each setting once"
    return {row["name"]: row for row in rows}


def change(shell: Shell, *arguments: str) -> str:
    ended = shell.type("config", *arguments)
    assert (ended.code, ended.stdout) == (0, ""), ended.stderr
    return ended.stderr


# ---------------------------------------------------------------------- show
def test_each_setting_is_shown_with_its_value_and_its_origin(
    shared_shell: Shell, zookeeper_root: str, queues: QueueSet
) -> None:
    queues.ensure_pool("team")
    change(shared_shell, "set", "warn_after", "8")
    change(shared_shell, "set", "pool.team.cap", "4")
    file = shared_shell.write("config.toml", "slots = 3\nretention = '2d'\n")
    shared_shell.environment |= {"ORCHESTRATOR_CONFIG": str(file), "ORCHESTRATOR_KILL_GRACE": "30s"}
    rows = shown(shared_shell)

    def row(name: str, value: object, origin: str, place: str) -> dict[str, object]:
        return {"name": name, "value": value, "origin": origin, "place": place}

    for expected in (
        row("root", zookeeper_root, "environment", "ORCHESTRATOR_ROOT"),
        row("kill_grace", 30.0, "environment", "ORCHESTRATOR_KILL_GRACE"),
        row("slots", 3, "file", str(file)),
        row("retention", 2 * 86400.0, "file", str(file)),
        row("connect_timeout", 10.0, "default", ""),
        row("warn_after", 8, "ZooKeeper", f"{zookeeper_root}/config"),
        row("handler_errors", 5, "default", ""),
        row("memory_pressure_limit", 0.0, "environment", "ORCHESTRATOR_MEMORY_PRESSURE_LIMIT"),
        row("pool.team.cap", 4, "ZooKeeper", f"{zookeeper_root}/config/pools/team"),
        row("pool.team.weight", 1, "default", ""),
        row("pool.default.paused", False, "default", ""),
    ):
        assert rows[str(expected["name"])] == expected
    assert set(LIMITS) <= set(rows)

    change(shared_shell, "set", "retention", "9d")
    rows = shown(shared_shell)
    assert rows["retention"] == row("retention", 9 * 86400.0, "ZooKeeper", f"{zookeeper_root}/config")
    assert set(shown(shared_shell, "--cluster")) == {name for name in rows if name.startswith("pool.")} | set(
        LIMITS
    )

    page = shared_shell.type("config", "show")
    assert page.code == 0, page.stderr
    assert re.search(rf"^retention +9d +ZooKeeper +{zookeeper_root}/config *$", page.stdout, re.MULTILINE)
    assert re.search(r"^handler_errors +5 +default *$", page.stdout, re.MULTILINE)


@pytest.mark.parametrize("hosts", [NOWHERE, {}], ids=["unreachable", "none"])
def test_without_zookeeper_only_local_settings_are_shown_with_a_warning(
    shell: Shell, hosts: dict[str, str]
) -> None:
    shell.environment |= hosts
    ended = shell.type("config", "show", "-o", "json")
    assert "the limits of all workers are not shown" in ended.stderr
    assert_no_traceback(ended.stderr)
    names = {row["name"] for row in ended.json()}
    assert {"retention", "slots", "root"} <= names
    assert "warn_after" not in names
    ended = shell.type("config", "show", "--cluster")
    assert_error(ended, 3, "ZOOKEEPER_HOSTS")


def test_with_nothing_changed_one_sentence_says_so(shell: Shell) -> None:
    # Settings of the shell of all tests; without them nothing has another value than its default.
    for name in [name for name in shell.environment if name.startswith("ORCHESTRATOR_")]:
        del shell.environment[name]
    shell.environment |= {name: str(shell.directory) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    ended = shell.type("config", "show", "--changed")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "no setting differs from its default\n")
    assert shell.type("config", "show", "--changed", "-o", "json").json() == []
    assert shell.type("config", "show", "--changed", "-q").stderr == ""
    changed = shell.type("config", "show", "--changed", ORCHESTRATOR_SLOTS="3")
    assert "slots" in changed.stdout
    assert changed.stderr == ""


def test_no_secret_is_shown(shared_shell: Shell, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("the-secret\n", "utf-8")
    login = {"SCHEME": "digest", "USER": "ada", "PASSWORD_FILE": str(password)}
    shared_shell.environment |= {
        f"ORCHESTRATOR_ZOOKEEPER_LOGIN__{name}": value for name, value in login.items()
    }
    ended = shared_shell.type("config", "show", "-vv")
    assert ended.code == 0, ended.stderr
    assert str(password) in ended.stdout
    assert "the-secret" not in ended.stdout + ended.stderr


def test_an_invalid_configuration_node_is_named_with_the_command_that_fixes_it(
    shared_shell: Shell, zookeeper_root: str
) -> None:
    change(shared_shell, "set", "warn_after", "8")
    node = f"{zookeeper_root}/config"
    with zookeeper_client(shared_shell.environment["ZOOKEEPER_HOSTS"]) as client:
        client.set(node, b"rubbish")
    ended = shared_shell.type("config", "show")
    assert_error(ended, 1, f"{node} is not a valid configuration", f"orchestrator zkcli set {node} {{}}")
    assert shared_shell.type("zkcli", "set", node, "{}").code == 0
    assert shown(shared_shell)["warn_after"]["origin"] == "default"


# ---------------------------------------------------------------------- set, unset
def test_a_limit_that_is_set_or_unset_is_effective_elsewhere_within_two_seconds(
    shared_shell: Shell, worker: ClusterConfig
) -> None:
    took = []
    for text, value in (("3h", 3 * 3600.0), ("30d", 30 * 86400.0)):
        words = change(shared_shell, "set", "retention", text)
        began = time.monotonic()
        assert f"retention is {text} for all workers" in words
        wait_until(lambda value=value: worker.limits.retention == value, SOON_S, f"{text} holds there")  # type: ignore[misc] # mypy cannot type the default of a lambda
        took.append(time.monotonic() - began)
    assert min(took) < EFFECTIVE_WITHIN_S, took
    assert "now follows the settings of each worker" in change(shared_shell, "unset", "retention")
    wait_until(lambda: worker.limits.retention == 7 * 86400, SOON_S, "its own holds there")


def test_a_limit_of_a_pool_that_is_set_or_unset_is_effective_elsewhere_within_two_seconds(
    shared_shell: Shell, queues: QueueSet
) -> None:
    pools = queues.pools
    assert pools.limits("default")[0].paused is False
    took = []
    for text, value in (("true", True), ("false", False), ("true", True)):
        change(shared_shell, "set", "pool.default.paused", text)
        began = time.monotonic()
        wait_until(lambda value=value: pools.limits("default")[0].paused is value, SOON_S, "it holds there")  # type: ignore[misc] # mypy cannot type the default of a lambda
        took.append(time.monotonic() - began)
    assert min(took) < EFFECTIVE_WITHIN_S, took
    change(shared_shell, "set", "pool.default.low_share", "0.5")
    assert "pool.default.low_share is 0.1 again" in change(shared_shell, "unset", "pool.default.low_share")
    limits = pools.read("default")[0]
    assert (limits.paused, limits.low_share) == (True, 0.1)


def test_the_default_pool_can_be_limited_before_its_first_job(shared_shell: Shell) -> None:
    change(shared_shell, "set", "pool.default.weight", "5")
    assert shown(shared_shell)["pool.default.weight"]["value"] == 5


def test_a_missing_pool_is_not_created(shared_shell: Shell, queues: QueueSet) -> None:
    ended = shared_shell.type("config", "set", "pool.defualt.paused", "true")
    assert_error(ended, 4, "no pool 'defualt'", "existing pools: default", "the first job of a pool")
    assert queues.pools.names() == ["default"]


@pytest.mark.parametrize("command", [["set", "retentoin", "1d"], ["unset", "retentoin"]], ids=str)
def test_a_wrong_name_is_refused_with_the_nearest_without_a_server(shell: Shell, command: list[str]) -> None:
    assert_error(shell.type("config", *command), 2, "no limit 'retentoin'", "did you mean retention?")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("retention", "30", "'30' is not a duration"),
        ("pool.default.weight", "0", "a whole number from 1 to 1,000"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence_without_a_server(
    shell: Shell, name: str, value: str, words: str
) -> None:
    ended = shell.type("config", "set", name, value)
    assert_error(ended, 2, words)
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "command", [["set", "retention", "3h"], ["unset", "retention"], ["history"]], ids=lambda words: words[0]
)
def test_zookeeper_unreachable(shell: Shell, command: list[str]) -> None:
    shell.environment |= NOWHERE
    assert_error(shell.type("config", *command), 3, "ZOOKEEPER_HOSTS")


# ---------------------------------------------------------------------- history
def test_the_history_has_the_user_the_limit_and_both_values(shared_shell: Shell) -> None:
    for arguments in (("set", "retention", "3h"), ("set", "memory_guard", "off"), ("unset", "retention")):
        change(shared_shell, *arguments)
    change(shared_shell, "set", "pool.default.cap", "4")
    *rows, pool = shared_shell.type("config", "history", "-o", "json").json()
    assert (pool["name"], pool["before"], pool["after"]) == ("pool.default.cap", 0, 4)
    assert {row["by"] for row in (*rows, pool)} == {"ip:127.0.0.1"}
    assert [(row["version"], row["name"], row["before"], row["after"]) for row in rows] == [
        (1, "retention", None, 10_800.0),
        (2, "memory_guard", None, False),
        (3, "retention", 10_800.0, None),
    ]
    page = shared_shell.type("config", "history").stdout
    assert re.search(r"^ *2 .* ip:127\.0\.0\.1 .* memory_guard +false *$", page, re.MULTILINE), page


def test_a_limit_beyond_the_listing_of_zookeeper_tools_is_warned_about(
    shared_shell: Shell, queues: QueueSet
) -> None:
    assert queues.pools.names() == ["default"]
    assert "warning" not in change(shared_shell, "set", "pool.default.bound", "6355")
    words = change(shared_shell, "set", "pool.default.bound", "20000", "-q")
    assert "warning: a queue of 20,000 jobs may be too long" in " ".join(words.split())
    assert "14,364 items with ids of 36 characters, or 6,355 of 128" in " ".join(words.split())


def test_the_spark_of_a_pool_is_shown_with_its_version(shell: Shell) -> None:
    home = shell.directory / "old"
    (home / "bin").mkdir(parents=True)
    (home / "jars").mkdir()
    (home / "jars" / "spark-core_2.13-4.0.5.jar").touch()
    (home / "bin" / "spark-submit").touch(mode=0o755)
    lines = [f"spark.{pool}.spark_home = '{home.with_name(pool)}'" for pool in ("old", "gone")]
    file = shell.write("config.toml", "\n".join(lines))
    shell.environment |= {**NOWHERE, "ORCHESTRATOR_CONFIG": str(file), "COLUMNS": "400"}
    ended = shell.type("config", "show")
    assert ended.code == 0, ended.stderr
    assert f"{home} (Spark 4.0.5)" in ended.stdout
    assert f"{home.with_name('gone')} (cannot be used: " in ended.stdout
    del shell.environment["ZOOKEEPER_HOSTS"]  # the worker finds the fault when it has a ZooKeeper
    refused = shell.type("up")
    assert_error(refused, 2, "setting spark_home of pool 'gone'", "gone is not a folder on this host")
