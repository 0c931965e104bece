"""Tests whose every transaction is judged, in ZooKeeper's own log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.log_judge import logged_violations


@pytest.fixture
def judged(zookeeper_hosts: str, zookeeper_root: str, zookeeper_data_dir: Path) -> Iterator[None]:
    """At the end of the test, no transaction below its root has broken a promise.

    A server that is not started here keeps its log to itself.
    """
    yield
    assert zookeeper_hosts
    if any(zookeeper_data_dir.iterdir()):
        assert logged_violations([zookeeper_data_dir], zookeeper_root) == []
