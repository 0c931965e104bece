"""A real Spark standalone cluster for tests: from the environment, else started from the pip package."""

import json
import os
import sys
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from queues import EmbeddedZooKeeper, ServerConfig
from queues.embedded.guarded import GuardedProcess
from queues.embedded.java import JarsMissing, JavaMissing, find_jars, find_java
from queues.embedded.ports import free_ports
from tests.class_archive import node_environment
from tests.jobs_support import ENVIRONMENT_MARK
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

HOST = "127.0.0.1"
START_TIMEOUT_S = 90
START_TRIES = 3
"""Another process may take a free port before it is used: then other ports are tried."""

MARK = "ORCHESTRATOR_TEST_CLUSTER"
"""Mark in the environment of the daemons and their children: executors and drivers."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
SMALL_APPLICATION = {
    "spark.cores.max": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
}
"""Settings of drivers on it: little memory and a quick start."""

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@dataclass(frozen=True)
class Master:
    """One master: its RPC address, its web interface and its REST submission server."""

    process: GuardedProcess
    port: int
    ui: str
    rest: str

    def state(self) -> dict[str, Any]:
        """The state of the master and its cluster; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.ui}/json/", timeout=5) as answer:  # noqa: S310 - our own server
                state: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):
            return {}
        return state


@dataclass
class StandaloneCluster:
    """Masters and workers on loopback that end with this process, however it ends."""

    folder: Path
    recovery: str = ""  # hosts of the ZooKeeper in which several masters elect a leader
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    masters: list[Master] = field(default_factory=list)
    workers: list[GuardedProcess] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The master URL of a driver."""
        return "spark://" + ",".join(f"{HOST}:{master.port}" for master in self.masters)

    @property
    def rest(self) -> str:
        """The submission servers of all masters, as a comma list of URLs."""
        return ",".join(master.rest for master in self.masters)

    @property
    def ui(self) -> str:
        """The web interfaces of all masters, as a comma list of URLs."""
        return ",".join(master.ui for master in self.masters)

    @property
    def leader(self) -> Master:
        """The active master; waits for one."""
        return wait_until(self._leader, START_TIMEOUT_S, "a master is ALIVE")

    def start(self, masters: int = 1, workers: int = 1) -> None:
        """Start the daemons together, and return when all workers are registered."""
        for left in reversed(range(START_TRIES)):
            for _ in range(masters):
                self.start_master()
            for _ in range(workers):
                self.start_worker()
            wait_until(
                lambda: self._has_died() or self._serves(workers), START_TIMEOUT_S, "the cluster serves"
            )
            if not self._has_died():
                return
            self.stop()
            if not left:
                unavailable(f"no Spark standalone cluster: {self._last_words()}")

    def start_master(self) -> Master:
        """Start one more master without waiting for it."""
        port, ui, rest = free_ports(HOST, 3)
        properties = {
            "spark.master.rest.enabled": "true",
            "spark.master.rest.host": HOST,
            "spark.master.rest.port": str(rest),
            "spark.port.maxRetries": "0",  # never another port than the given one
        }
        if self.recovery:
            properties |= {
                "spark.deploy.recoveryMode": "ZOOKEEPER",
                "spark.deploy.zookeeper.url": self.recovery,
                "spark.deploy.zookeeper.dir": f"/spark-{self.mark}",
            }
        arguments = ["--host", HOST, "--port", str(port), "--webui-port", str(ui)]
        process = self._spawn(f"master-{port}", _MASTER, arguments, properties)
        master = Master(process, port, f"http://{HOST}:{ui}", f"http://{HOST}:{rest}")
        self.masters.append(master)
        return master

    def start_worker(
        self, cores: int = 8, memory: str = "8g", within: Sequence[str] = (), host: str = HOST
    ) -> GuardedProcess:
        """Start one more worker without waiting for it; cores and memory are only counted.

        `within` is a command that runs the worker, for example in other namespaces. `host` is another address
        of loopback for a worker that Spark takes for another host.
        """
        port, ui = free_ports(host, 2)
        arguments = ["--host", host, "--port", str(port), "--webui-port", str(ui)]
        arguments += ["--cores", str(cores), "--memory", memory, "--work-dir", str(self.folder / "work")]
        name = f"worker-{port}"
        worker = self._spawn(name, _WORKER, [*arguments, self.url], {"spark.port.maxRetries": "0"}, within)
        self.workers.append(worker)
        return worker

    def alive_workers(self) -> int:
        """Number of live workers according to the leader."""
        return sum(worker["state"] == "ALIVE" for worker in self.leader.state().get("workers", []))

    def processes(self) -> list[psutil.Process]:
        """The processes of the cluster besides its daemons: executors, drivers, and their children."""
        daemons = {pid for daemon in self._daemons() for pid in (daemon.pid, daemon.guard_pid)}
        found = []
        for process in psutil.process_iter():
            try:
                ours = process.environ().get(MARK) == self.mark
                if ours and process.pid not in daemons and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue  # ended meanwhile, or not readable
        return found

    def stop(self) -> None:
        """Stop the daemons, and then kill the remaining processes."""
        for daemon in self._daemons():
            daemon.stop()
        self.workers, self.masters = [], []
        for process in self.processes():
            process.kill()

    def _leader(self) -> Master | None:
        return next((master for master in self.masters if master.state().get("status") == "ALIVE"), None)

    def _serves(self, workers: int) -> bool:
        answers = [master.state() for master in self.masters]
        leading = [answer for answer in answers if answer.get("status") == "ALIVE"]
        return all(answers) and len(leading) == 1 and leading[0].get("aliveworkers") == workers

    def _has_died(self) -> bool:
        return any(daemon.exit_code() is not None for daemon in self._daemons())

    def _daemons(self) -> list[GuardedProcess]:
        return [*self.workers, *(master.process for master in self.masters)]

    def _last_words(self) -> str:
        logs = sorted(self.folder.glob("*.log"), key=lambda log: log.stat().st_mtime)
        return logs[-1].read_text("utf-8", errors="replace")[-1000:] if logs else "nothing was started"

    def _spawn(
        self,
        name: str,
        daemon: str,
        arguments: list[str],
        properties: dict[str, str],
        within: Sequence[str] = (),
    ) -> GuardedProcess:
        try:
            java, spark_home = find_java(), find_jars().parent
        except (JavaMissing, JarsMissing) as error:
            unavailable(f"no Spark standalone cluster: SPARK_MASTER_URL is not set, and {error}")
        conf, local = self.folder / "conf", self.folder / "local"
        for directory in (conf, local):
            directory.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{key} {value}\n" for key, value in properties.items()), "utf-8")
        environment = {
            MARK: self.mark,
            ENVIRONMENT_MARK: "",  # the shared cluster must not have the mark of one test
            "JAVA_HOME": str(java.path.resolve().parents[1]),
            "SPARK_HOME": str(spark_home),
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(local),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
            "SPARK_LAUNCHER_OPTS": QUICK_START,
            "PYSPARK_PYTHON": sys.executable,
            **node_environment(),
        }
        command = [
            *within,
            str(spark_home / "bin" / "spark-class"),
            daemon,
            *arguments,
            "--properties-file",
            str(file),
        ]
        with (self.folder / f"{name}.log").open("wb") as output:
            return GuardedProcess(command, self.folder, output, environment=environment)


@contextmanager
def standalone_cluster(folder: Path, masters: int = 1, workers: int = 1) -> Iterator[StandaloneCluster]:
    """Yield a running cluster for one test; several masters elect a leader through their own ZooKeeper."""
    with ExitStack() as stack:
        recovery = ""
        if masters > 1:
            # Short sessions: a standby takes over when the session of the killed leader has ended.
            quick = (("maxSessionTimeout", "3000"),)
            server = EmbeddedZooKeeper(ServerConfig(folder / "zookeeper", tick_ms=500, settings=quick))
            recovery = stack.enter_context(server).hosts
        folder.mkdir(parents=True, exist_ok=True)
        cluster = StandaloneCluster(folder, recovery)
        stack.callback(cluster.stop)
        cluster.start(masters, workers)
        yield cluster


@dataclass(frozen=True)
class Standalone:
    """A cluster for submissions, wherever it runs."""

    url: str
    rest: str
    ui: str
    staging: str  # a directory with the same path on this host and all nodes
    cluster: StandaloneCluster | None  # None for an external cluster

    def local(self) -> StandaloneCluster:
        """The processes of the cluster, for tests that kill them."""
        if self.cluster is None:
            unavailable("the cluster of SPARK_MASTER_URL was not started by the tests")
        return self.cluster


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A real standalone cluster of one master and one worker; one per test session and xdist worker.

    Another one is selected by SPARK_MASTER_URL, SPARK_MASTER_REST, SPARK_MASTER_UI and SPARK_STAGING.
    """
    folder = tmp_path_factory.mktemp("standalone")
    if url := os.environ.get("SPARK_MASTER_URL"):
        host = url.removeprefix("spark://").partition(":")[0]
        rest = os.environ.get("SPARK_MASTER_REST", f"http://{host}:6066")
        ui = os.environ.get("SPARK_MASTER_UI", f"http://{host}:8080")
        yield Standalone(url, rest, ui, os.environ.get("SPARK_STAGING", str(folder)), None)
        return
    with standalone_cluster(folder) as cluster:
        yield Standalone(cluster.url, cluster.rest, cluster.ui, str(folder / "staging"), cluster)
