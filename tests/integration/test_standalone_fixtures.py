"""The cluster of the tests itself: it is real, and nothing of it outlives the tests."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

import queues
from tests.servers.standalone import MARK, Standalone
from tests.waiting import wait_until

GONE_S = 30
OWNER_PROGRAM = """
import sys
from pathlib import Path
from tests.servers.standalone import standalone_cluster
with standalone_cluster(Path(sys.argv[1])) as cluster:
    print(cluster.mark, flush=True)
    sys.stdin.read()
"""


def test_a_cluster_has_a_master_that_leads_and_a_worker(standalone: Standalone) -> None:
    state = standalone.local().leader.state()
    assert (state["status"], state["aliveworkers"], state["url"]) == ("ALIVE", 1, standalone.url)


def test_no_daemon_is_left_when_the_tests_are_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER_PROGRAM, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(queues.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        mark = owner.stdout.readline().strip()
        assert len(daemons(mark)) == 4, "a master, a worker and their guards"
        owner.kill()
    wait_until(lambda: not daemons(mark), GONE_S, "master and worker are gone")


def daemons(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
