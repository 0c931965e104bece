"""Fixtures for all tests: the real servers."""

pytest_plugins = ["tests.servers.zookeeper", "tests.queues_support", "tests.jobs_support"]
