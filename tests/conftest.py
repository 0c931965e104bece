"""Fixtures for all tests: the real servers, and what several folders share."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from orchestrator.logs.record.redaction import REDACTOR
from tests.class_archive import use_archive

# Hundreds of processes of ours are started: each would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
use_archive()
settings.register_profile("tests", deadline=None)  # a busy machine is no bug
settings.load_profile("tests")

pytest_plugins = [
    "tests.plugins.kinds",
    "tests.plugins.timings",
    "tests.servers.zookeeper",
    "tests.servers.secured",
    "tests.servers.elasticsearch",
    "tests.servers.standalone",
    "tests.servers.yarn",
    "tests.servers.kubernetes.fixtures",
    "tests.queues_support",
    "tests.jobs_support",
    "tests.pid_namespaces",
    "tests.kubernetes_support",
    "tests.runner_support",
    "tests.operators_support",
    "tests.spark_support",
    "tests.warm_support",
    "tests.log_index",
    "tests.chaos.fixtures",
]
# They import each other: in whatever order, their assertions tell what was compared.
pytest.register_assert_rewrite(*pytest_plugins)


@pytest.fixture(autouse=True)
def _nothing_leaks_from_test_to_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What one test registers as a secret is a word to the next; what a command sets for itself ends."""
    for name in ("_secrets", "_known", "_repeated"):
        monkeypatch.setattr(REDACTOR, name, getattr(REDACTOR, name))  # to be put back
    monkeypatch.setattr("orchestrator.cli.lazy._Plugins.left_out", False)  # goes with its variable below
    before = set(os.environ)
    yield
    for name in os.environ.keys() - before:
        del os.environ[name]
