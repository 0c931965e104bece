"""Drivers are killed by -9, again and again, while they drain a topic of Kafka into a target.

A target with keys has the last row of each key then, and no other row. A target without keys has every row; a
sink that writes at least once may have some of them twice.
"""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.kafka_support import kafka_jars
from tests.sampling import chance, sample, times
from tests.servers.databases import DatabaseServer, driver_jars
from tests.servers.kafka import Topics
from tests.servers.redis import RedisServer
from tests.spark_programs import start_stream_driver
from tests.waiting import wait_until

pytestmark = [pytest.mark.campaign, pytest.mark.drawn("kills of writers"), pytest.mark.timeout(7200)]

KILLS = times(1, 50)
ROWS = times(2_000, 200_000)
KEYS = ROWS // 2
BATCH = ROWS // (2 * KILLS + 2)  # rows of a micro-batch: the rows last longer than the kills
DELETED = 7  # rows with a multiple of it delete their key
START_S = 180
Keyed = Mapping[str, str]


@dataclass(frozen=True)
class Target:
    """A table `dst` with columns id and n, and gone if rows can delete."""

    declared: str
    found: Callable[[], Keyed | list[str]]  # n by id, or each n that was added
    deletes: bool = False
    exactly_once: bool = True


TARGETS = ("kafka", "postgres", "mariadb", "redis", "redis list", "parquet")


@pytest.fixture(params=sample(TARGETS, 2, "targets of drains"))
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """A target on its real server."""
    match request.param:
        case "kafka":
            return _kafka(request.getfixturevalue("topics"))
        case "postgres" | "mariadb" as kind:
            return _database(request.getfixturevalue(kind))
        case "parquet":
            return _parquet(tmp_path / "out")
    server: RedisServer = request.getfixturevalue("redis_server")
    return _redis(server, request.getfixturevalue("redis_keys"), is_list=request.param == "redis list")


def _kafka(topics: Topics) -> Target:
    topic, kafka = topics.new("target"), topics.kafka
    declared = f"""CREATE TABLE dst (id BIGINT, n BIGINT, gone BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
      USING kafka OPTIONS (topic '{topic}', bootstrap_servers '{kafka.servers}', delete_column 'gone')"""

    def found() -> Keyed:
        last = {each.key: each.value for each in kafka.records(topic)}
        return {(key or b"").decode(): str(json.loads(value)["n"]) for key, value in last.items() if value}

    return Target(declared, found, deletes=True)


def _database(server: DatabaseServer) -> Target:
    server.run("CREATE TABLE kept (id bigint PRIMARY KEY, n bigint)")
    declared = f"""CREATE TABLE dst (id BIGINT, n BIGINT, gone BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
      {server.options("kept", delete_column="gone")}"""
    return Target(declared, lambda: dict(server.run("SELECT id, n FROM kept")), deletes=True)


def _redis(server: RedisServer, keys: str, *, is_list: bool) -> Target:
    options = {"connector": "redis", **server.options, "value": "{n}"}
    options |= {"command": "LPUSH", "key": keys} if is_list else {"key": f"{keys}:{{id}}"}
    declared = "CREATE TABLE dst (id BIGINT, n BIGINT) WITH ("
    declared += ", ".join(f"'{option}' = '{value}'" for option, value in options.items()) + ")"

    def listed() -> list[str]:
        with server.client() as client:
            return list(client.lrange(keys, 0, -1))

    def keyed() -> Keyed:
        with server.client() as client:
            names = list(client.scan_iter(f"{keys}:*", count=10_000))
            return dict(zip([name.rpartition(":")[2] for name in names], client.mget(names), strict=True))

    return Target(declared, listed if is_list else keyed, exactly_once=not is_list)


def _parquet(folder: Path) -> Target:
    from pyarrow import parquet  # type: ignore[import-untyped]  # noqa: PLC0415 - pyarrow publishes no types

    declared = f"CREATE TABLE dst (id BIGINT, n BIGINT) USING parquet OPTIONS (path '{folder}')"

    def found() -> list[str]:
        files = [each for each in folder.rglob("*.parquet") if not each.name.startswith((".", "_"))]
        return [str(n) for each in files for n in parquet.read_table(each, columns=["n"])["n"].to_pylist()]

    return Target(declared, found)


class Drain:
    """The drivers of one job, one after the other."""

    def __init__(self, script: str, folder: Path) -> None:
        self._script, self._folder = script, folder

    def start(self) -> "subprocess.Popen[bytes]":
        jars = (*kafka_jars(), *driver_jars())
        return start_stream_driver(self._script, self._folder, jars, self._folder / "driver.log")

    def kill_one(self, random: Random) -> None:
        """Kill a driver some time after it has begun a micro-batch."""
        begun, driver = self._begun(), self.start()
        try:
            wait_until(
                lambda: self._begun() > begun or driver.poll() is not None, START_S, "a micro-batch begins"
            )
            with suppress(subprocess.TimeoutExpired):
                driver.wait(random.uniform(0, 1.5))
        finally:
            code = self._kill(driver)
        assert code == -signal.SIGKILL, f"it ended with {code} before its death: {self._log()}"

    def end(self) -> None:
        """Run a driver to the end of the topic."""
        driver = self.start()
        try:
            driver.wait(1800)
        finally:
            code = self._kill(driver)
        assert code == 0, self._log()

    def _kill(self, driver: "subprocess.Popen[bytes]") -> int:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        return driver.wait()

    def _log(self) -> str:
        return (self._folder / "driver.log").read_text("utf-8", "replace")[-3000:]

    def _begun(self) -> int:
        offsets = self._folder.glob("checkpoints/**/offsets/*")
        return max((int(each.name) for each in offsets if each.name.isdigit()), default=-1)


def test_each_row_arrives_whenever_drivers_are_killed(
    target: Target, topics: Topics, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    source, servers = topics.new("source"), topics.kafka.servers
    rows = [{"id": n % KEYS, "n": n} for n in range(ROWS)]
    topics.kafka.produce(source, [json.dumps(each).encode() for each in rows])
    columns = f"id, n, n % {DELETED} = 0 AS gone" if target.deletes else "id, n"
    declared = f"""CREATE TABLE src (id BIGINT, n BIGINT) USING kafka OPTIONS (topic '{source}',
      bootstrap_servers '{servers}', max_offsets_per_trigger {BATCH})"""
    insert = "INSERT INTO dst SELECT {} FROM src".format
    drain = Drain(";\n".join((declared, target.declared, insert(columns))), tmp_path)
    random = chance(f"drain kills {target.declared[:40]}")
    for _ in range(KILLS):
        drain.kill_one(random)
    drain.end()
    found = target.found()
    if isinstance(found, Mapping):
        kept = {str(each["id"]): each["n"] for each in rows}
        alive = {key: str(n) for key, n in kept.items() if not (target.deletes and n % DELETED == 0)}
        assert found == alive
        return
    counts = Counter(found)
    assert counts.keys() == {str(n) for n in range(ROWS)}, "a row is missing"
    doubled = counts.total() - ROWS
    record_property("rows_written_twice", doubled)
    assert doubled == 0 if target.exactly_once else doubled <= KILLS * BATCH
