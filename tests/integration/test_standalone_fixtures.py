"""The cluster of the tests itself: it is real, and nothing of it outlives the tests."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import queues
from tests.servers.standalone import MARK
from tests.waiting import wait_until

GONE_S = 30
OWNER_PROGRAM = """
import sys
from pathlib import Path
from tests.servers.standalone import standalone_cluster
with standalone_cluster(Path(sys.argv[1]), workers=0) as cluster:
    print(cluster.mark, flush=True)
    sys.stdin.read()
"""


@pytest.mark.standalone
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
        assert len(daemons(mark)) == 2, "a master and its guard"
        owner.kill()
    wait_until(lambda: not daemons(mark), GONE_S, "the master is gone")


def daemons(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
