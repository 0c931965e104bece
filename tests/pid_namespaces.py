"""Processes in their own PID namespace, as in a container with the host's name and state directory."""

import subprocess

import pytest

from tests.servers.zookeeper import unavailable

IN_ANOTHER_PID_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Prefix of a command; its end kills all processes of the namespace. Needs root."""


@pytest.fixture(scope="session")
def pid_namespaces() -> None:
    """Skip, or fail in CI, where no namespace can be created."""
    try:
        subprocess.run([*IN_ANOTHER_PID_NAMESPACE, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        unavailable(f"no PID namespaces: they need root, or CAP_SYS_ADMIN ({error})")
