"""The fixture that checks every transaction of a test in ZooKeeper's own log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.log_judge import logged_violations


@pytest.fixture
def judged(zookeeper_hosts: str, zookeeper_root: str, zookeeper_data_dir: Path) -> Iterator[None]:
    """After the test: no transaction below its root violates an invariant.

    Checks nothing where the tests did not start the server: its log is not accessible.
    """
    yield
    assert zookeeper_hosts
    if any(zookeeper_data_dir.iterdir()):
        assert logged_violations([zookeeper_data_dir], zookeeper_root) == []
