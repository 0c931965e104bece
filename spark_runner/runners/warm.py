"""A worker's warm servers: it keeps them running, chooses them for jobs, and cleans up after dead drivers."""

import hashlib
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from orchestrator.logs.files import folder_lock
from spark_runner.protocol.errors import KillError
from spark_runner.protocol.process import current_pid_namespace
from spark_runner.protocol.run_plan import in_warm_server
from spark_runner.protocol.warm_files import LINK, ServerFiles, ServerPlan
from spark_runner.runners.base import SparkTarget, Submission, SubmitRequest
from spark_runner.runners.installation import SparkInstallation, own_installation
from spark_runner.runners.launch import Launch, code_zip, driver_environment, launch_driver
from spark_runner.runners.run_directory import RunDirectory, run_directories
from spark_runner.runners.spark_settings import for_drivers
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.sql.sample import compiled_sample

_SERVER_MAIN = Path(__file__).parents[1] / "driver" / "server_main.py"  # never imported: it loads PySpark
# A JVM that has run out of memory may keep running without working; its drivers should restart elsewhere.
_JAVA_OPTIONS = ("-XX:+ExitOnOutOfMemoryError",)
_FAIR = {"spark.scheduler.mode": "FAIR"}  # a small job does not wait for the tasks of a large one
_EVICTION_SECONDS = 10.0  # a server ends itself if it cannot end a query within five
_LOOK_SECONDS = 0.05
_KEY_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class WarmSpec:
    """The Spark configuration of a server: jobs with the same one can run there."""

    master: str
    conf: Mapping[str, str]
    spark: SparkInstallation | None = None  # None = that of the worker

    @property
    def key(self) -> str:
        """Its name; different in each PID namespace, because a server must see its drivers and workers.

        Each Spark has its own, by folder and version: the workers of a host may have different ones, and find
        the servers of each other and of their predecessors.
        """
        spark = self.spark or own_installation()
        facts = [self.master, sorted(self.conf.items()), current_pid_namespace(), spark and asdict(spark)]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:_KEY_CHARACTERS]


class WarmServers:
    """The servers below one state directory, of all workers. Thread-safe.

    `plan` is that of each server that it starts.
    """

    def __init__(self, submits: SparkSubmits, plan: ServerPlan) -> None:
        self.submits = submits
        self._plan = plan

    # ------------------------------------------------------------------ servers
    def start(self, spec: WarmSpec) -> None:
        """Start a server, which takes no job before it is open; raises SubmissionError."""
        request = SubmitRequest(
            f"warm-{spec.key}-{uuid.uuid4().hex[:8]}",
            uuid.uuid4().hex,
            "warm server",
            self._plan.to_json() | ({"sample": compiled_sample()} if self._plan.rehearsal else {}),
            target=SparkTarget(spec.master),
            conf=_FAIR | dict(spec.conf),
            spark=spec.spark,
        )

        def prepare(directory: RunDirectory) -> Launch:
            files = ServerFiles(directory.path)
            files.prepare()
            files.keep()
            return launch_driver(
                request,
                directory,
                driver_main=_SERVER_MAIN,
                conf_dir=self.submits.state_dir / "spark-conf",
                java_options=_JAVA_OPTIONS,
                quick_start=self.submits.quick_start,
                passed_on=self.submits.passed_on,
            )

        self.submits.start(request, prepare)

    def of(self, spec: WarmSpec) -> list[ServerFiles]:
        """The servers for this spec, oldest first: starting, open and ended ones."""
        runs = self.submits.state_dir / "runs"
        names = [path.name for path in runs.glob(f"warm-{spec.key}-*")] if runs.is_dir() else []
        found = [run_directories(self.submits.state_dir, name) for name in names]
        directories = sorted((each[-1] for each in found if each), key=RunDirectory.submitted_ns)
        return [ServerFiles(directory.path) for directory in directories]

    def runs(self, server: ServerFiles) -> bool:
        """Whether its JVM runs, or is about to."""
        return any(found.may_run for found in self.submits.find(server.run))

    # ------------------------------------------------------------------ their drivers
    def start_driver(
        self, jobs: SparkSubmits, request: SubmitRequest, server: ServerFiles, driver_main: Path
    ) -> Submission:
        """Start a driver in this server, as a separate process like any driver; raises SubmissionError."""

        def prepare(directory: RunDirectory) -> Launch:
            (directory.path / LINK).symlink_to(server.path)
            inherited = for_drivers(jobs.passed_on)
            environment = driver_environment(request, directory, jobs.state_dir / "spark-conf", inherited)
            if request.spark is not None:
                environment["PYTHONPATH"] = _python_path(request, directory, jobs.shared_dir, environment)
            arguments = [str(driver_main), str(directory.path / "plan.json")]
            return Launch(arguments, environment, program=[request.python], directory=request.directory)

        return jobs.start(replace(request, plan=in_warm_server(request.plan, str(server.path))), prepare)

    def has(self, driver: RunDirectory) -> bool:
        """Whether a query of a driver may still run in its server after the end of the driver's process."""
        server = _server_of(driver)
        return server is not None and server.is_in(driver.incarnation) and self.runs(server)

    def evict(self, driver: RunDirectory) -> None:
        """Wait until the server has cleared an ended driver, or else end the server; raises KillError."""
        deadline = time.monotonic() + _EVICTION_SECONDS
        while self.has(driver) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        server = _server_of(driver)
        if server is not None and self.has(driver):
            self.submits.kill(server.run, grace_seconds=0)
            if self.has(driver):
                raise KillError(f"run {driver.run} may still have a query in {server.run}")


def _python_path(
    request: SubmitRequest, directory: RunDirectory, shared_dir: Path, environment: Mapping[str, str]
) -> str:
    """PYTHONPATH as spark-submit would set it for a driver with the Spark of its pool."""
    code = [code_zip(request, directory, shared_dir)] if request.needs_code else []
    zips = sorted(Path(environment["SPARK_HOME"], "python", "lib").glob("*.zip"))
    return os.pathsep.join(filter(None, [*map(str, (*code, *zips)), environment.get("PYTHONPATH", "")]))


def _server_of(driver: RunDirectory) -> ServerFiles | None:
    try:
        return ServerFiles((driver.path / LINK).readlink())
    except OSError:
        return None


log = logging.getLogger(__name__)

_CHECK_SECONDS = 2.0
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 10.0, 600.0  # after servers that ended before they opened


class WarmSupervisor:
    """Keeps one server per spec open, by a check every two seconds in its own thread; no spec, no thread."""

    def __init__(
        self, servers: WarmServers, specs: Sequence[WarmSpec] = (), *, look_seconds: float = _CHECK_SECONDS
    ) -> None:
        self.servers, self._look_seconds = servers, look_seconds
        self._specs = {spec.key: spec for spec in specs}
        self._open: dict[str, list[ServerFiles]] = {}
        self._failed: dict[str, tuple[int, float]] = {}  # times in a row, and when to try again (monotonic)
        self._logged: set[str] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that keeps servers open."""
        if self._specs and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="warm-servers", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop keeping servers: without another worker each ends after its last driver."""
        self._stopping.set()
        if self._thread is None:
            return
        self._thread.join()
        for spec in self._specs.values():
            for server in self.servers.of(spec):
                server.release()

    def choose(self, request: SubmitRequest) -> ServerFiles | None:
        """The server that can take this job now; None if the job needs its own JVM."""
        if not request.is_warm or request.environment:
            return None
        if request.needs_code and set(request.python_packages) - {"spark_runner"}:
            return None  # the Python workers of the server have the code of the orchestrator alone
        return self.choose_server(WarmSpec(request.target.master, request.conf, request.spark))

    def choose_server(self, spec: WarmSpec) -> ServerFiles | None:
        """The newest open server with this Spark."""
        known = reversed(self._open.get(spec.key, ()))
        return next((server for server in known if not server.is_draining()), None)

    def _run(self) -> None:
        while True:
            for spec in self._specs.values():
                try:
                    self._look(spec)
                except Exception as error:  # noqa: BLE001 - e.g. a full disk: jobs start in their own JVMs
                    self._warn_once(f"cannot keep warm servers open: {error!r}")
            if self._stopping.wait(self._look_seconds):
                return

    def _look(self, spec: WarmSpec) -> None:
        found = self.servers.of(spec)
        running = [server for server in found if self.servers.runs(server)]
        opened = [server for server in running if server.was_opened()]
        for server in opened:
            if server not in self._open.get(spec.key, ()):
                log.info("the warm server %s takes jobs", server.run)
        self._open[spec.key] = opened
        for server in running:
            server.keep()
        with folder_lock(self.servers.submits.state_dir) as is_mine:
            if not is_mine:
                return
            self._tidy([server for server in found if server not in running])
            if all(server.is_draining() for server in running) and self._is_due(spec, found):
                self.servers.start(spec)

    def _is_due(self, spec: WarmSpec, found: Sequence[ServerFiles]) -> bool:
        """Whether to start a server now; after one that never opened, only after a pause."""
        failures, until = self._failed.get(spec.key, (0, 0.0))
        last = found[-1] if found else None
        if last is None or last.was_opened():
            self._failed.pop(spec.key, None)
            return True
        if last.run not in self._logged:
            self._logged.add(last.run)
            pause = min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**failures)
            self._failed[spec.key] = failures + 1, time.monotonic() + pause
            log.warning(
                "a warm server ended before it was open, jobs start in their own JVMs: see %s",
                last.path / "stderr.log",
            )
            return False
        return time.monotonic() >= until

    def _tidy(self, ended: Sequence[ServerFiles]) -> None:
        for server in ended[:-1]:  # the last one's logs may help an operator
            self.servers.submits.cleanup(server.run)

    def _warn_once(self, words: str) -> None:
        if words not in self._logged:
            self._logged.add(words)
            log.warning(words)
