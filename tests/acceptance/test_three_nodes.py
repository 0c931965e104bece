"""docs/three-nodes.md, with three addresses of this machine as nodes; one of them is lost and returns."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Running, Shell
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
NODES = ("127.0.71.1", "127.0.71.2", "127.0.71.3")
"""Addresses that no other test uses: each node has the usual ports."""

pytestmark = [pytest.mark.timeout(600), pytest.mark.spark]


class Node:
    """One address of this machine with the commands of the page."""

    def __init__(self, shell: Shell, number: int, steps: "Steps") -> None:
        self._shell, self._number, self._steps = shell, number, steps
        self._state = {"ORCHESTRATOR_STATE_DIR": str(shell.directory / f"node-{number}")}
        self.zookeeper = self.start_zookeeper()
        self.worker: Running | None = None

    def start_zookeeper(self) -> Running:
        # All addresses are of this host, so no server can find itself.
        command = [*shlex.split(self._steps.zookeeper), "--id", str(self._number)]
        self.zookeeper = self._shell.start(*command, **self._state)
        return self.zookeeper

    def start_worker(self) -> None:
        self.worker = self._shell.start(*shlex.split(self._steps.worker), **self._state)

    def lose(self) -> None:
        """`kill -9` of both commands."""
        for command in (self.zookeeper, self.worker):
            if command is not None:
                command.kill()


class Steps:
    """The commands of the page, of which only the addresses are changed."""

    def __init__(self, page: str) -> None:
        blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        self.secrets, zookeeper, worker, self.job, self.again = (
            block.replace("10.0.0.1,10.0.0.2,10.0.0.3", ",".join(NODES)) for block in blocks
        )
        self.zookeeper = self._last_command(zookeeper).replace("$NODES", ",".join(NODES))
        self.configuration, _, _ = worker.rpartition("orchestrator worker")
        self.worker = self._last_command(worker)

    @staticmethod
    def _last_command(block: str) -> str:
        return block.strip().splitlines()[-1].removeprefix("orchestrator ")


@pytest.fixture
def steps(shell: Shell) -> Steps:
    found = Steps((ROOT / "docs/three-nodes.md").read_text("utf-8"))
    for folder in ("deploy", "examples"):
        shutil.copytree(ROOT / folder, shell.directory / folder, ignore=shutil.ignore_patterns("output"))
    return found


def test_three_nodes_by_the_tutorial_survive_the_loss_of_one(shell: Shell, steps: Steps) -> None:
    run(shell, steps.secrets)
    run(shell, steps.configuration)
    nodes = [Node(shell, number, steps) for number in (1, 2, 3)]
    for node in nodes:
        node.zookeeper.wait_for_words(" serves as ")
    shell.environment["ORCHESTRATOR_CONFIG"] = str(shell.directory / "config.toml")
    for node in nodes:
        node.start_worker()
    wait_until(lambda: len(status(shell)["workers"]) == len(nodes), SPARK_TIMEOUT_S, "three workers")
    submit(shell, steps.job)

    leader = next(node for node in nodes if "serves as leader" in node.zookeeper.stderr)
    leader.lose()
    submit(shell, steps.again)

    leader.start_zookeeper().wait_for_words("serves as follower")
    leader.start_worker()
    wait_until(lambda: len(status(shell)["workers"]) == len(nodes), SPARK_TIMEOUT_S, "three workers again")
    # With another server lost, the one that has returned is needed for a majority.
    next(node for node in nodes if node is not leader).lose()
    assert status(shell)["workers"]


def run(shell: Shell, block: str) -> None:
    """Run the lines of a block in the working directory."""
    script = shell.write("step.sh", "set -eu\n" + block)
    subprocess.run(["bash", script], cwd=shell.directory, env=shell.environment, check=True, timeout=60)


def submit(shell: Shell, block: str) -> None:
    command = next(line for line in block.splitlines() if line.startswith("orchestrator job submit"))
    ended = shell.type(*shlex.split(command)[1:], timeout=SPARK_TIMEOUT_S)
    assert ended.code == 0, ended.stderr


def status(shell: Shell) -> dict[str, list[object]]:
    shown: dict[str, list[object]] = shell.type("cluster", "status", "-o", "json").json()
    return shown
