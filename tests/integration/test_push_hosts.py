"""A push on executors of two hosts, of which one is lost: what its tasks may have is shared out again.

The hosts are addresses of loopback, and the channel has TLS, as between machines. The target takes the same
time for each request, so what it receives shows how many were in flight, and from which task.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from queues.embedded.guarded import GuardedProcess
from tests.servers.standalone import SMALL_APPLICATION, StandaloneCluster, standalone_cluster
from tests.servers.web import Received, Reply, WebServer, web_server
from tests.spark_programs import program_environment
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.standalone,
    pytest.mark.drawn("kills of writers"),
    pytest.mark.timeout(600),
]

HOSTS = ("127.0.0.2", "127.0.0.3")
EXECUTOR = "CoarseGrainedExecutorBackend"
LIMIT, BATCH, ROWS = 8, 5, 20_000
REQUEST_S, QUICK_S = 0.1, 0.003
START_S = FOLLOWS_S = 300
CONF = SMALL_APPLICATION | {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # no task starts before both executors are there
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{START_S}s",
    "spark.ui.enabled": "false",
}
SCRIPT = f"""CREATE TABLE dst (n BIGINT) WITH ('connector' = 'http', 'url' = '{{url}}/items',
  'idempotency_header' = '', 'batch_size' = '{BATCH}', 'concurrency' = '{LIMIT}', 'parallelism' = '2',
  'connect_timeout' = '1', 'timeout' = '1');
INSERT INTO dst SELECT id AS n FROM range(0, {ROWS}, 1, 2)"""  # noqa: S608 - numbers of this test


@dataclass(frozen=True)
class Request:
    """A request that the target took: when, until when, and from which of the two tasks."""

    at: float
    end: float
    task: int


class Target:
    """What the target received."""

    def __init__(self) -> None:
        self.seconds, self.rows, self.requests = REQUEST_S, set[int](), list[Request]()
        self.server: WebServer
        self._lock = threading.Lock()

    def reply(self, received: Received) -> Reply:
        rows = [row["n"] for row in json.loads(received.body)]
        with self._lock:
            self.rows.update(rows)
            self.requests.append(Request(received.at, received.at + self.seconds, rows[0] // (ROWS // 2)))
            return Reply(delay_s=self.seconds)

    def most_of(self, task: int, since: float, until: float = float("inf")) -> int:
        """The most requests in flight of a task among those that came in this time."""
        return most(each for each in self._all() if each.task == task and since <= each.at < until)

    def most(self) -> int:
        """The most requests in flight, ever."""
        return most(self._all())

    def _all(self) -> list[Request]:
        with self._lock:
            return list(self.requests)


def most(requests: Iterable[Request]) -> int:
    """The most requests in flight at the same time: each from its arrival until the target may answer it."""
    count = found = 0
    for _, change in sorted(each for one in requests for each in ((one.at, 1), (one.end, -1))):
        count += change
        found = max(found, count)
    return found


class Numbers:
    """The numbers that the driver has written."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> list[tuple[float, Mapping[str, Any]]]:
        """Each time with the numbers of the push; the last line may not be complete."""
        text = self._file.read_text("utf-8") if self._file.exists() else ""
        found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [(at, pushes["dst"]) for at, pushes in found if "dst" in pushes]

    def is_shared_and_used(self) -> bool:
        """Whether two tasks have all requests in flight that they may have."""
        last = self.last()
        return (last.get("tasks"), last.get("stale"), last.get("in_flight")) == (2, 0, LIMIT)

    def last(self) -> Mapping[str, Any]:
        """The last ones."""
        return next((push for _, push in reversed(self.all())), {})


@contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[StandaloneCluster, dict[str, GuardedProcess]]]:
    with standalone_cluster(folder, workers=0) as cluster:
        workers = {host: cluster.start_worker(cores=1, memory="1g", host=host) for host in HOSTS}
        wait_until(lambda: cluster.alive_workers() == len(HOSTS), START_S, "both hosts serve")
        yield cluster, workers


@contextmanager
def driver(script: str, folder: Path, master: str, numbers: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "tests.push_driver", str(folder), master, json.dumps(CONF), str(numbers)]
    with (folder / "driver.log").open("wb") as log:
        made = subprocess.Popen(
            command,
            env=program_environment() | {"PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        assert made.stdin is not None
        made.stdin.write(script.encode())
        made.stdin.close()
        yield made
    finally:
        if made.poll() is None:
            os.killpg(made.pid, signal.SIGKILL)
            made.wait()


def executor_at(cluster: StandaloneCluster, host: str) -> psutil.Process:
    (found,) = [each for each in cluster.processes() if {EXECUTOR, host} <= words_of(each)]
    return found


def words_of(process: psutil.Process) -> set[str]:
    with suppress(psutil.Error):
        return {word.rpartition(".")[2] if EXECUTOR in word else word for word in process.cmdline()}
    return set()


def lose(executor: psutil.Process, worker: GuardedProcess) -> None:
    """The host is gone: nothing of it says goodbye, and it starts no other executor."""
    assert worker.pid is not None
    with suppress(psutil.NoSuchProcess):
        psutil.Process(worker.pid).suspend()
    for process in [executor, *executor.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    worker.kill()


def test_the_budget_of_a_lost_host_goes_to_the_other_one_when_its_lease_is_over(tmp_path: Path) -> None:
    target, numbers = Target(), Numbers(tmp_path / "numbers")
    with web_server(target.reply) as target.server, two_hosts(tmp_path / "cluster") as (cluster, workers):
        script = SCRIPT.format(url=target.server.url)
        with driver(script, tmp_path, cluster.url, tmp_path / "numbers") as made:

            def wait_for(condition: Any, words: str) -> None:
                wait_until(lambda: made.poll() is not None or condition(), FOLLOWS_S, words)
                assert made.poll() is None, (tmp_path / "driver.log").read_text("utf-8", "replace")[-3000:]

            wait_for(numbers.is_shared_and_used, "a task of each host pushes, together at the limit")
            began = numbers.all()[-1][0]
            wait_for(
                lambda: all(target.most_of(task, began) == LIMIT // 2 for task in (0, 1)), "they share it"
            )
            lost, other = (executor_at(cluster, host) for host in HOSTS)
            # Which of the tasks ran there is seen by what comes afterwards.
            lose(lost, workers[HOSTS[0]])
            gone = len(target.requests)
            wait_for(lambda: len(target.requests) >= gone + 2 * LIMIT, "the other executor goes on")
            since = target.requests[gone + LIMIT].at
            (task,) = {each.task for each in target.requests[gone + LIMIT :]}

            wait_for(lambda: numbers.last()["tasks"] == 1, "the lease of the lost task is over")
            kept = [at for at, push in numbers.all() if push["tasks"] == 2]
            assert any(push["stale"] == 1 and push["tasks"] == 2 for _, push in numbers.all())
            assert target.most_of(task, since, kept[-1]) <= LIMIT // 2, "the share of the lost task is kept"
            wait_for(
                lambda: target.most_of(task, kept[-1]) == LIMIT, "the other executor has the whole budget"
            )
            push = numbers.last()
            assert (push["tasks"], push["stale"]) == (1, 0)
            assert other.is_running()

            target.seconds = QUICK_S
            assert made.wait(FOLLOWS_S) == 0, (tmp_path / "driver.log").read_text("utf-8", "replace")[-3000:]
    assert target.rows == set(range(ROWS)), "nothing is lost"
    assert target.most() == LIMIT, "the limit holds at each moment"
