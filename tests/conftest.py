"""Fixtures for all tests: the real servers, and those that several folders share."""

import logging
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from orchestrator.logs.record.redaction import REDACTOR
from tests.class_archive import use_archive

# The tests start hundreds of processes: each would compile its imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
use_archive()
settings.register_profile("tests", deadline=None)  # a busy machine is no bug
settings.load_profile("tests")

pytest_plugins = [
    "tests.plugins.kinds",
    "tests.plugins.draws",
    "tests.plugins.timings",
    "tests.plugins.reports",
    "tests.servers.zookeeper",
    "tests.servers.secured",
    "tests.servers.elasticsearch",
    "tests.servers.databases",
    "tests.servers.standalone",
    "tests.servers.yarn",
    "tests.servers.kafka",
    "tests.servers.image",
    "tests.servers.kubernetes.fixtures",
    "tests.servers.redis",
    "tests.queues_support",
    "tests.jobs_support",
    "tests.schedules_support",
    "tests.streams_support",
    "tests.pid_namespaces",
    "tests.kubernetes_support",
    "tests.runner_support",
    "tests.operators_support",
    "tests.spark_support",
    "tests.jdbc_support",
    "tests.elasticsearch_support",
    "tests.lake_support",
    "tests.sql_findings",
    "tests.warm_support",
    "tests.log_index",
    "tests.chaos.fixtures",
]
# They import each other: with any order, their assertions show the compared values.
pytest.register_assert_rewrite(*pytest_plugins)


@pytest.fixture(autouse=True)
def _nothing_leaks_from_test_to_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo registered secrets and the environment variables set by a command after each test."""
    for name in ("_secrets", "_known", "_repeated"):
        monkeypatch.setattr(REDACTOR, name, getattr(REDACTOR, name))  # restored after the test
    for name in ("kazoo", "queues", "spark_runner"):  # a driver in this process takes them from the root
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    monkeypatch.setattr("orchestrator.cli.lazy._Plugins.left_out", False)  # set with a variable removed below
    before = set(os.environ)
    yield
    for name in os.environ.keys() - before:
        del os.environ[name]
