"""Fixtures for all tests: the real servers, and what several folders share."""

pytest_plugins = [
    "tests.servers.zookeeper",
    "tests.servers.secured",
    "tests.servers.elasticsearch",
    "tests.queues_support",
    "tests.jobs_support",
    "tests.runner_support",
    "tests.operators_support",
]
