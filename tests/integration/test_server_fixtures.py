"""The servers of the tests: they are real, and no process of them outlives the tests."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.owner_process import owner_process
from tests.servers.standalone import MARK
from tests.waiting import wait_until

GONE_S = 30
STANDALONE = """
import sys
from pathlib import Path
from tests.servers.standalone import standalone_cluster
with standalone_cluster(Path(sys.argv[1]), workers=0) as cluster:
    print(cluster.mark, flush=True)
    sys.stdin.read()
"""
ELASTICSEARCH = """
import sys, urllib.parse
from tests.servers.elasticsearch import local_elasticsearch
with local_elasticsearch() as url:
    print(f"http.port={urllib.parse.urlsplit(url).port}", flush=True)
    sys.stdin.read()
"""


def of_environment(mark: str) -> list[psutil.Process]:
    return living(lambda process: process.environ().get(MARK) == mark)


def of_command(option: str) -> list[psutil.Process]:
    return living(lambda process: any(option in argument for argument in process.cmdline()))


@pytest.mark.parametrize(
    ("program", "processes", "count"),
    [
        # A master and its guard; a guard and a launcher, whose child has its options from a file.
        pytest.param(STANDALONE, of_environment, 2, marks=pytest.mark.standalone),
        pytest.param(ELASTICSEARCH, of_command, 2, marks=pytest.mark.elasticsearch),
    ],
    ids=["standalone", "elasticsearch"],
)
def test_no_server_is_left_when_the_tests_are_killed(
    tmp_path: Path, program: str, processes: Callable[[str], list[psutil.Process]], count: int
) -> None:
    with owner_process(program, tmp_path) as owner:
        assert owner.stdout is not None
        mark = owner.stdout.readline().strip()
        found = processes(mark)
        family = {*found, *(child for process in found for child in process.children(recursive=True))}
        assert len(found) == count
        owner.kill()
    wait_until(lambda: not any(process.is_running() for process in family), GONE_S, "all are gone")


def living(is_meant: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if is_meant(process) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
