"""Processes in a PID namespace of their own, as in a container that shares host name and state directory."""

import subprocess

import pytest

from tests.servers.zookeeper import unavailable

IN_ANOTHER_PID_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Before a command; its end takes all processes of the namespace along. Needs root."""


@pytest.fixture(scope="session")
def pid_namespaces() -> None:
    """Skips, or fails in CI, where none can be made."""
    try:
        subprocess.run([*IN_ANOTHER_PID_NAMESPACE, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        unavailable(f"no PID namespaces: they need root, or CAP_SYS_ADMIN ({error})")
