"""A real YARN for tests: from the environment, else Hadoop's own daemons on this host."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_runner.runners.yarn.site import resource_manager_urls
from tests.servers.yarn_daemons import (
    NODE_MANAGER,
    RESOURCE_MANAGER,
    Daemon,
    fetch_text,
    make_active,
    node_properties,
    pair_properties,
    resource_manager_properties,
    wait_for_daemons,
    write_configuration,
)
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

START_TIMEOUT_S = 120


@dataclass
class Yarn:
    """A running cluster: the configuration of its clients."""

    conf_dir: Path  # for HADOOP_CONF_DIR
    url: str  # of the ResourceManager
    staging: str  # a URL from which every node reads the files of submissions
    node: Daemon | None = None  # its only NodeManager, if the tests started it

    def lose_node(self) -> None:
        """End the node with all its containers as a power cut does, until `bring_node_back`."""
        self.own_node().cut_power()

    def bring_node_back(self) -> None:
        """Start the node again, without its former containers."""
        node = self.own_node()
        if node.has_ended():
            node.start()
        url = f"{self.url}/ws/v1/cluster/metrics"
        wait_until(
            lambda: '"activeNodes":1' in fetch_text(url), START_TIMEOUT_S, "the node is registered again"
        )

    def own_node(self) -> Daemon:
        """The node of a cluster started by the tests; skips the test elsewhere."""
        if self.node is None:
            unavailable("the cluster of YARN_CONF_DIR was not started by the tests")
        return self.node


@pytest.fixture(scope="session")
def yarn() -> Iterator[Yarn]:
    """A real YARN; one cluster per test session and xdist worker."""
    if given := os.environ.get("YARN_CONF_DIR"):
        staging = os.environ.get("YARN_STAGING_DIR", "")
        yield Yarn(Path(given), resource_manager_urls(Path(given))[0], staging)
        return
    with tempfile.TemporaryDirectory(prefix="yarn-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        addresses = resource_manager_properties()
        write_configuration(folder / "conf", folder, {**addresses, **node_properties()})
        manager, node = (
            Daemon(folder, main_class, folder / "conf", name)
            for main_class, name in ((RESOURCE_MANAGER, "rm"), (NODE_MANAGER, "nm"))
        )
        url = f"http://{addresses['yarn.resourcemanager.webapp.address']}"
        try:
            for daemon in (manager, node):
                daemon.start()
            wait_for_daemons(
                (manager, node), f"{url}/ws/v1/cluster/metrics", '"activeNodes":1', START_TIMEOUT_S
            )
            yield Yarn(folder / "conf", url, (folder / "staging").as_uri(), node)
        finally:
            node.close()
            manager.close()


@dataclass
class YarnPair:
    """Two ResourceManagers, one of them active; there is no node, so submissions wait."""

    conf_dir: Path
    managers: dict[str, Daemon]  # by their URLs
    names: dict[str, str]  # likewise

    def make_active(self, url: str) -> None:
        """Make this one active."""
        make_active(self.conf_dir, self.names[url])


@pytest.fixture
def yarn_pair() -> Iterator[YarnPair]:
    """A new pair for each test."""
    if os.environ.get("YARN_CONF_DIR"):
        unavailable("the cluster of YARN_CONF_DIR was not started by the tests")
    ids = ("rm1", "rm2")
    with (
        tempfile.TemporaryDirectory(prefix="yarn-", ignore_cleanup_errors=True) as name,
        ExitStack() as stack,
    ):
        folder = Path(name)
        conf_dir = folder / "conf"
        write_configuration(conf_dir, folder, {**pair_properties(folder, ids), **node_properties()})
        option = "yarn.resourcemanager.ha.id"
        daemons = [Daemon(folder, RESOURCE_MANAGER, conf_dir, each, f"-D{option}={each}") for each in ids]
        for daemon in daemons:
            stack.callback(daemon.close)
            daemon.start()
        urls = resource_manager_urls(conf_dir)
        pair = YarnPair(conf_dir, dict(zip(urls, daemons, strict=True)), dict(zip(urls, ids, strict=True)))
        for url in urls:
            wait_for_daemons(daemons, f"{url}/ws/v1/cluster/info", '"STANDBY"', START_TIMEOUT_S)
        pair.make_active(urls[0])
        yield pair
