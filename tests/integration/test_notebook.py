"""The live line of `Client.wait` in a real IPython kernel, as Jupyter starts it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.jobs_support import ScriptedDeployment, python_job

STARTED_S = 60
JOB = "job"
WAITS = """
from orchestrator import Client
with Client.connect({hosts!r}, root={root!r}) as client:
    client.wait({job!r})
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockingKernelClient]:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    manager = KernelManager(transport="ipc", ip=str(tmp_path / "socket"))
    manager.start_kernel(env=dict(os.environ))
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=STARTED_S)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


class Cell:
    """What a notebook shows below a cell."""

    def __init__(self, kernel: BlockingKernelClient, source: str) -> None:
        self._kernel = kernel
        self._id = kernel.execute(source)
        self.lines: dict[str, dict[str, Any]] = {}
        self.texts: list[str] = []

    def read_until(self, words: str) -> None:
        """Read what the kernel publishes, until a line or the state of the kernel contains these words."""
        while True:
            message = self._kernel.get_iopub_msg(timeout=STARTED_S)
            if message["parent_header"].get("msg_id") != self._id:
                continue
            kind, content = message["msg_type"], message["content"]
            assert kind not in {"error", "stream"}, content
            if kind in {"display_data", "update_display_data"}:
                self.lines[content["transient"]["display_id"]] = content["data"]
                self.texts.append(content["data"]["text/plain"])
            if words in str(self.texts[-1:]) or content.get("execution_state") == words:
                return


def test_a_cell_that_waits_shows_one_line_that_is_updated(
    scripted_deployment: ScriptedDeployment, kernel: BlockingKernelClient
) -> None:
    where = scripted_deployment.settings
    scripted_deployment.client.submit(python_job("pass"), job_id=JOB)
    cell = Cell(kernel, WAITS.format(hosts=where.zookeeper_hosts, root=where.root, job=JOB))
    cell.read_until("waits: ")
    scripted_deployment.worker()
    cell.read_until("SUCCESS")
    cell.read_until("idle")
    [line] = cell.lines.values()
    assert line["text/plain"] == f"{JOB}  SUCCESS"
    assert f"<code>{JOB}</code> SUCCESS" in line["text/html"]
