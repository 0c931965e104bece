"""Real servers of Redis for tests: one alone, a cluster of three, and one behind a Sentinel."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import RedisError
from redis.sentinel import MasterNotFoundError, Sentinel

from queues.embedded.guarded import GuardedProcess
from queues.embedded.ports import free_ports
from spark_runner.connectors.redis.client import slot
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

START_TIMEOUT_S = 30
_COMMON = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no")


@dataclass(frozen=True, slots=True)
class RedisServer:
    """The address of a server, and the options of its tables."""

    host: str
    port: int

    @property
    def options(self) -> dict[str, str]:
        """The options of tables on this server."""
        return {"host": self.host, "port": str(self.port)}

    def client(self, **settings: object) -> Redis:
        """A client that returns text."""
        return Redis(host=self.host, port=self.port, decode_responses=True, **settings)  # type: ignore[arg-type]  # of many types


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A server for all tests; each uses keys of its own (`redis_keys`)."""
    if url := os.environ.get("REDIS_URL"):
        parts = urlsplit(url)
        yield RedisServer(parts.hostname or "127.0.0.1", parts.port or 6379)
        return
    with local_redis() as server:
        yield server


@pytest.fixture
def redis_keys(redis_server: RedisServer) -> Iterator[str]:
    """A prefix of keys for one test, which are removed afterwards."""
    prefix = f"test-{uuid.uuid4().hex[:12]}"
    yield prefix
    with Redis(host=redis_server.host, port=redis_server.port) as client:  # keys may be no text
        for key in client.scan_iter(f"{prefix}*"):
            client.delete(key)


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[list[str]]:
    """`host:port` of the three masters of a cluster."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(local_redis_node()) for _ in range(3)]
        addresses = [f"{node.host}:{node.port}" for node in nodes]
        subprocess.run(
            [_program("redis-cli"), "--cluster", "create", *addresses, "--cluster-yes"],
            check=True,
            capture_output=True,
            timeout=START_TIMEOUT_S,
        )
        wait_until(lambda: _is_whole(nodes), START_TIMEOUT_S, "the cluster covers all slots")
        yield addresses


@pytest.fixture(scope="session")
def redis_sentinel(redis_server: RedisServer) -> Iterator[str]:
    """`host:port` of a Sentinel that watches the server as `main`."""
    with tempfile.TemporaryDirectory(prefix="sentinel-") as folder:
        settings = Path(folder, "sentinel.conf")
        settings.write_text(f"sentinel monitor main {redis_server.host} {redis_server.port} 1\n", "utf-8")
        with local_redis("--sentinel", file=settings) as sentinel:
            known = Sentinel([(sentinel.host, sentinel.port)])
            wait_until(lambda: _knows_master(known), START_TIMEOUT_S, "the Sentinel knows the server")
            yield f"{sentinel.host}:{sentinel.port}"


@dataclass(frozen=True)
class MovingSlot:
    """A slot of a cluster that moves from its owner to another master."""

    number: int
    owner: Redis
    other: Redis

    def begin(self) -> None:
        """Let the owner give keys away."""
        self._set(self.other, "IMPORTING", self._id(self.owner))
        self._set(self.owner, "MIGRATING", self._id(self.other))

    def move(self, key: str) -> None:
        """Move one key."""
        to = self.other.get_connection_kwargs()
        self.owner.execute_command("MIGRATE", to["host"], to["port"], key, 0, 5000)

    def end(self) -> None:
        """Give the slot to the other master."""
        for node in (self.other, self.owner):
            self._set(node, "NODE", self._id(self.other))

    def _set(self, node: Redis, *words: str) -> None:
        node.execute_command("CLUSTER", "SETSLOT", self.number, *words)

    def _id(self, node: Redis) -> str:
        return str(node.cluster("myid").decode())


@contextmanager
def moving_slot(nodes: Sequence[str], key: str) -> Iterator[MovingSlot]:
    """The slot of a key in a cluster."""
    host, _, port = nodes[0].rpartition(":")
    with RedisCluster(host=host, port=int(port)) as cluster:
        owner: Any = cluster.get_node_from_key(key)
        other: Any = next(node for node in cluster.get_primaries() if node.name != owner.name)
    with Redis(host=owner.host, port=owner.port) as giver, Redis(host=other.host, port=other.port) as taker:
        yield MovingSlot(slot(key.encode()), giver, taker)


@contextmanager
def local_redis(*options: str, port: int = 0, file: Path | None = None) -> Iterator[RedisServer]:
    """A server of our own with these options; a given `file` is its configuration."""
    server = RedisServer("127.0.0.1", port or free_ports("127.0.0.1", 1)[0])
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        process = start_redis(server, folder, options, file)
        try:
            yield server
        finally:
            process.kill()


@contextmanager
def local_redis_node(*options: str) -> Iterator[RedisServer]:
    """A node of a cluster, which is in none yet."""
    # By default nodes talk at ports above 30,000, which Linux also gives to connections of others.
    port, inner = free_ports("127.0.0.1", 2)
    with local_redis("--cluster-enabled", "yes", "--cluster-port", str(inner), *options, port=port) as node:
        yield node


def start_redis(
    server: RedisServer, folder: str, options: Sequence[str] = (), file: Path | None = None
) -> GuardedProcess:
    """Start a server at its address and wait until it answers."""
    given = [str(file)] if file else []
    limits = ["--bind", "127.0.0.1"] if "--sentinel" in options else list(_COMMON)
    command = [
        _program("redis-server"),
        *given,
        "--port",
        str(server.port),
        "--dir",
        folder,
        *limits,
        *options,
    ]
    log = Path(folder, "redis.log")
    with log.open("ab") as output:
        process = GuardedProcess(command, Path(folder), output)
    password = options[options.index("--requirepass") + 1] if "--requirepass" in options else None

    def answers() -> bool:
        assert process.exit_code() is None, f"redis-server has ended:\n{log.read_text('utf-8', 'replace')}"
        try:
            with server.client(password=password) as client:
                return bool(client.ping())
        except (RedisError, OSError):
            return False

    try:
        wait_until(answers, START_TIMEOUT_S, f"redis-server answers at port {server.port}")
    except BaseException:
        process.kill()
        raise
    return process


def _program(name: str) -> str:
    return shutil.which(name) or unavailable(f"{name} is missing: install Debian's package redis-server")


def _is_whole(nodes: Sequence[RedisServer]) -> bool:
    return all(node.client().cluster("info")["cluster_state"] == "ok" for node in nodes)


def _knows_master(sentinel: Sentinel) -> bool:
    try:
        return bool(sentinel.discover_master("main"))
    except (MasterNotFoundError, RedisError):
        return False
