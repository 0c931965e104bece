"""Unreachable clusters as a user sees them: `job show` gives the reason why a job waits, or has failed.

tests/integration/test_cluster_refusals.py has the message of each case.
"""

import re
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, Shell
from tests.waiting import wait_until

NO_LISTENER = "no server listens there (connection refused)"
VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def kubeconfig(server: str) -> str:
    """The kubeconfig of a user unknown to any cluster."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "a-token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
    }
    return yaml.safe_dump(document)


@pytest.fixture
def address() -> Iterator[str]:
    """An address without a listener, reserved for the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def shell(shared_shell: Shell, address: str) -> Shell:
    """A shell with a worker that reaches no cluster, whatever is configured on this machine."""
    for name in VARIABLES:
        shared_shell.environment.pop(name, None)
    config = shared_shell.write("kubeconfig", kubeconfig(f"https://{address}"))
    shared_shell.environment |= {"HOME": str(shared_shell.directory), "KUBECONFIG": str(config)}
    worker = shared_shell.start("worker", "--slots", "4")
    worker.wait_for_words("4 slots", COMMAND_TIMEOUT_S)
    return shared_shell


def submit(shell: Shell, job_id: str, spark: dict[str, Any], **retry: object) -> None:
    definition = {
        "name": job_id,
        "python": {"text": "print()\n"},
        "spark": spark,
        "retry": {"submissions": 2, "attempts": 1, **retry},
    }
    file = shell.write(f"{job_id}.yaml", yaml.safe_dump(definition))
    assert shell.type("job", "submit", file.name, "--id", job_id).code == 0


def once_tried(shell: Shell, job_id: str) -> str | None:
    shown = shell.type("job", "show", job_id).stdout
    return shown if "error (" in shown else None


def assert_reason(shown: str, *words: str) -> None:
    assert "error (submission):" in shown, shown
    missing = [word for word in words if word not in shown]
    assert not missing, (missing, shown)
    assert not re.search(r"0x[0-9a-f]{6}|Traceback|HTTPConnection", shown), (
        f"an internal object is shown: {shown}"
    )


def test_a_job_waits_for_its_cluster_with_a_reason_until_it_fails_or_is_killed(
    shell: Shell, address: str
) -> None:
    sparks: dict[str, tuple[dict[str, Any], str]] = {
        "standalone": (
            {"master": f"spark://{address}", "standalone": {"ui": address}},
            f"http://{address}/json/ does not answer: {NO_LISTENER}",
        ),
        "yarn": ({"master": "yarn"}, "set HADOOP_CONF_DIR to the folder with yarn-site.xml"),
        "kubernetes": (
            {
                "master": f"k8s://https://{address}",
                "kubernetes": {"image": "spark", "namespace": "default"},
                "deploy_mode": "cluster",
            },
            f"the Kubernetes API at https://{address} does not answer: {NO_LISTENER}",
        ),
    }
    for job_id, (spark, _) in sparks.items():
        submit(shell, job_id, spark, delay="1h")
        submit(shell, f"{job_id}-soon", spark, delay="1s")
    for job_id, (_, words) in sparks.items():
        shown = wait_until(partial(once_tried, shell, job_id), 60, f"{job_id} was tried")
        assert "ACCEPT, in queue accept" in shown
        assert "next try: 2" in shown
        assert_reason(shown, words)

        assert shell.type("job", "wait", f"{job_id}-soon", "--timeout", "60s").code == 1
        shown = shell.type("job", "show", f"{job_id}-soon").stdout
        assert "ERROR_FAIL, in queue finish" in shown
        assert_reason(shown, words)

    for job_id in sparks:
        assert shell.type("job", "kill", job_id).code == 0
        shell.type("job", "wait", job_id, "--timeout", "60s")
        assert "CANCEL, in queue finish" in shell.type("job", "show", job_id).stdout
