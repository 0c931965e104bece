"""A real ZooKeeper for tests: from the environment, from Docker, else started here."""

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NoReturn

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError, NotEmptyError

from queues import EmbeddedZooKeeper, ServerConfig
from queues.embedded.packets import server_mode
from queues.model.errors import QueueError
from tests.waiting import wait_until

IMAGE = "zookeeper:3.9"

TICK_MS = 500
"""Sessions can be as short as two ticks, so that a test of a lost session takes one second."""

START_TIMEOUT_S = 60
REMOVAL_TIMEOUT_S = 30

_NO_SYNC = "-Dzookeeper.forceSync=no"
"""The shared server is never killed, and each fsync on a busy disk would delay all tests."""


def zookeeper_server(data_dir: Path) -> AbstractContextManager[str]:
    """Yield the connection string of a real server.

    A server is started in `data_dir` when neither ZOOKEEPER_HOSTS nor Docker provides one.
    """
    if hosts := os.environ.get("ZOOKEEPER_HOSTS"):
        return nullcontext(hosts)
    return _in_docker() if docker_answers() else _embedded(data_dir)


@pytest.fixture(scope="session")
def zookeeper_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the log of the server of `zookeeper_hosts`; empty if the tests did not start it."""
    return tmp_path_factory.mktemp("zookeeper")


@pytest.fixture(scope="session")
def zookeeper_hosts(zookeeper_data_dir: Path) -> Iterator[str]:
    """Connection string of a real ZooKeeper; one server per test session and xdist worker."""
    with zookeeper_server(zookeeper_data_dir) as hosts:
        yield hosts


@pytest.fixture
def zookeeper_root(zookeeper_hosts: str) -> Iterator[str]:
    """Path for one test, such as `/test-<uuid>`: not created, removed recursively afterwards."""
    root = f"/test-{uuid.uuid4()}"
    yield root
    with zookeeper_client(zookeeper_hosts) as client:
        remove_tree(client, root)


def tree(client: KazooClient, path: str) -> list[str]:
    """The node and all nodes below it; a node removed meanwhile has none."""
    found = [path]
    with suppress(NoNodeError):
        for name in client.get_children(path):
            found += tree(client, f"{path.rstrip('/')}/{name}")
    return found


def remove_tree(client: KazooClient, root: str) -> None:
    """Remove a node with all below it, if it exists.

    A driver on a cluster may create nodes meanwhile, until it notices that its attempt is gone.
    """
    wait_until(lambda: _is_removed(client, root), REMOVAL_TIMEOUT_S, f"{root} is removed")


def _is_removed(client: KazooClient, root: str) -> bool:
    """Remove one level at a time, for there may be tens of thousands of nodes; False if new ones appeared."""
    levels, level = list[list[str]](), [root]
    while level:
        levels.append(level)
        asked = [(path, client.get_children_async(path)) for path in level]
        level = []
        for path, reply in asked:
            with suppress(NoNodeError):
                level += [f"{path}/{name}" for name in reply.get(60)]
    is_removed = True
    for level in reversed(levels):
        for reply in [client.delete_async(path) for path in level]:
            try:
                reply.get(60)
            except NoNodeError:  # the ephemeral of a session that has just ended
                pass
            except NotEmptyError:
                is_removed = False
    return is_removed


@contextmanager
def zookeeper_client(hosts: str, timeout: float = 10) -> Iterator[KazooClient]:
    """Yield a connected plain client with a session of `timeout` seconds."""
    client = KazooClient(hosts, timeout=timeout)
    try:
        client.start(timeout=30)
        yield client
    finally:
        client.stop()
        client.close()


@contextmanager
def _embedded(data_dir: Path) -> Iterator[str]:
    config = ServerConfig(data_dir, tick_ms=TICK_MS, owner="tests", long_run=True, jvm_options=(_NO_SYNC,))
    server = EmbeddedZooKeeper(config)
    try:
        server.start()
    except QueueError as error:
        unavailable(f"no ZooKeeper: ZOOKEEPER_HOSTS is not set, no Docker daemon answers, and {error}")
    with server:
        yield server.hosts


@contextmanager
def _in_docker() -> Iterator[str]:
    # Imported where it is used: testcontainers takes half a second, and few machines have a daemon.
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415

    container = DockerContainer(IMAGE).with_exposed_ports(2181)
    container.with_env("ZOO_TICK_TIME", str(TICK_MS)).with_env("ZOO_4LW_COMMANDS_WHITELIST", "*")
    container.with_env("ZOO_MAX_CLIENT_CNXNS", "0").with_env("ZOO_ADMINSERVER_ENABLED", "false")
    container.with_env("JVMFLAGS", _NO_SYNC)
    container.with_env("ZOO_CFG_EXTRA", "maxSessionTimeout=40000")
    with container:
        hosts = f"{container.get_container_host_ip()}:{container.get_exposed_port(2181)}"
        wait_until(lambda: server_mode(hosts), START_TIMEOUT_S, f"{IMAGE} serves at {hosts}")
        yield hosts


def docker_answers() -> bool:
    """Whether a daemon can start a container."""
    kind, _, address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").partition("://")
    if kind == "unix":  # checked first: docker leaves its socket open when nothing listens
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(address) != 0:
                return False
    import docker  # type: ignore[import-untyped]  # noqa: PLC0415 - docker has no types; else as above

    try:
        with closing(docker.from_env(timeout=5)) as client:
            return bool(client.ping())
    except docker.errors.DockerException:
        return False


def unavailable(reason: str) -> NoReturn:
    """Skip on a developer's machine, fail in CI: there, a test that did not run must not look passed."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
