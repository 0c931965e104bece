"""A runner of each kind with attempts in ZooKeeper for its drivers: the fixtures of the contract suite."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.compose import DRIVER_MAIN
from queues.model.codec import timestamp
from queues.model.operations import Operation
from queues.session import Session
from queues.store.commit import commit
from spark_runner.protocol.attempt import Attempt, attempt_path, intent
from spark_runner.protocol.run_plan import PythonProgram
from spark_runner.runners.base import Runner, RunState, SparkTarget, Submission, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.standalone.backend import StandaloneBackend
from spark_runner.runners.yarn.backend import YarnBackend
from tests.class_archive import archives
from tests.jobs_support import STAND_IN
from tests.queues_support import open_session
from tests.run_plans import run_plan
from tests.scripted.backend import Backend
from tests.scripted.functions import for_real_drivers
from tests.scripted.ledger import Ledger
from tests.scripted.runner import ScriptedRunner
from tests.servers.standalone import SMALL_APPLICATION, Standalone
from tests.servers.yarn import Yarn
from tests.servers.yarn_daemons import fetch_text
from tests.waiting import wait_until
from tests.warm_support import SPEC, WarmHouse
from tests.yarn_support import WITHOUT_EXECUTORS, container_processes, found_by_hadoop, spark_settings

END_S = 120
"""A driver of real Spark takes ten seconds alone, and longer on a cluster or beside other tests."""


@dataclass
class Kit:
    """A runner, and attempts in ZooKeeper for its drivers."""

    runner: Runner
    session: Session
    root: str
    ledger: Ledger
    written: Callable[[str], str]  # turns a program of `tests.scripted.functions` into one for its drivers
    target: SparkTarget = field(default_factory=lambda: SparkTarget("local[1]"))
    conf: dict[str, str] = field(default_factory=dict)
    is_warm: bool = False
    keeps_records: bool = False  # the cluster itself keeps ended drivers, and has no way to remove them
    at_cluster: Callable[[str], list[str]] = lambda _run: []  # the drivers of a run in the cluster itself
    check_removed: Callable[[], None] = lambda: None  # waits until the cluster has no driver of any run
    scheme: str = ""  # prefix of a path that every driver and executor can read

    def attempt(self) -> Attempt:
        """A new attempt, announced and not taken."""
        run_key = str(uuid.uuid4())
        folder = f"{self.root}/jobs/{run_key}"
        self.session.ensure_path(folder)
        path, place = attempt_path(folder, run_key, 1), self.runner.place().to_json()
        commit(self.session, [intent(path, run_key=run_key, number=1, place=place, at=timestamp())])
        return self.read(path)

    def read(self, path: str) -> Attempt:
        attempt = Attempt.read(self.session, path)
        assert attempt is not None
        return attempt

    def change(self, *operations: Operation) -> None:
        commit(self.session, operations)

    def request(self, attempt: Attempt, program: str) -> SubmitRequest:
        incarnation = uuid.uuid4().hex
        plan = run_plan(
            run=attempt.run,
            run_key=attempt.run_key,
            attempt_path=attempt.path,
            stop_path=f"{self.root}/stops/default/{attempt.run_key}",
            incarnation=incarnation,
            lease_seconds=60,
            zookeeper=self.session.settings.for_plan(),
            program=PythonProgram("job.py", self.written(program)),
        )
        return SubmitRequest(
            attempt.run,
            incarnation,
            "contract",
            plan.to_json(),
            target=self.target,
            conf=self.conf,
            is_warm=self.is_warm,
        )

    def submit(self, attempt: Attempt, program: str) -> Submission:
        return self.runner.submit(self.request(attempt, program))

    def only(self, run: str) -> Submission:
        (submission,) = self.runner.find(run)
        return submission

    def wait_ended(self, run: str) -> list[Submission]:
        def ended() -> bool:
            return all(found.state in {RunState.EXITED, RunState.GONE} for found in self.runner.find(run))

        wait_until(ended, END_S, f"every driver of {run} has ended")
        return self.runner.find(run)

    def wait_started(self, attempt: Attempt) -> None:
        wait_until(lambda: self.ledger.starts()[attempt.run], END_S, "the program runs")


@dataclass(frozen=True)
class Scene:
    """The parts of a kit."""

    session: Session
    root: str
    folder: Path
    fixtures: pytest.FixtureRequest  # for the servers of the kind

    def submits(self) -> SparkSubmits:
        return SparkSubmits(self.folder / "state", quick_start=archives())

    def kit(self, runner: Runner, **more: object) -> Kit:
        """A kit with real drivers: they run on this host, whatever their cluster reports."""
        ledger = Ledger(self.folder / "ledger.jsonl")
        written = lambda program: for_real_drivers(program, ledger.path)  # noqa: E731 - a field
        return Kit(runner, self.session, self.root, ledger, written, **more)  # type: ignore[arg-type]  # as given


@contextmanager
def _scripted(scene: Scene) -> Iterator[Kit]:
    state = scene.folder / "state"
    with Backend(state, scene.session.settings.hosts) as backend:
        runner, ledger = ScriptedRunner(state), backend.store.ledger
        yield Kit(runner, scene.session, scene.root, ledger, lambda program: program)


@contextmanager
def _stand_in(scene: Scene) -> Iterator[Kit]:
    submits = SparkSubmits(scene.folder / "state", spark_submit=STAND_IN)
    yield scene.kit(LocalRunner(submits, driver_main=DRIVER_MAIN))


@contextmanager
def _local(scene: Scene) -> Iterator[Kit]:
    yield scene.kit(LocalRunner(scene.submits(), driver_main=DRIVER_MAIN))


@contextmanager
def _warm(scene: Scene) -> Iterator[Kit]:
    house: WarmHouse = scene.fixtures.getfixturevalue("warm")
    house.wait_open()
    runner = LocalRunner(scene.submits(), driver_main=DRIVER_MAIN, warm=house.keeper)
    yield scene.kit(runner, target=SparkTarget(SPEC.master), is_warm=True)


@contextmanager
def _standalone(scene: Scene, mode: str) -> Iterator[Kit]:
    cluster: Standalone = scene.fixtures.getfixturevalue("standalone")
    options = {"rest": cluster.rest, "ui": cluster.ui, "staging": cluster.staging}
    target = SparkTarget(cluster.url, mode, options)
    backend = StandaloneBackend(scene.submits(), driver_main=DRIVER_MAIN)
    runner = backend.runner_for(target)

    def live(run: str) -> list[str]:
        state = json.loads(fetch_text(f"{cluster.ui}/json/"))
        named = [application["name"] for application in state["activeapps"]]
        # The master does not store the names of drivers; this test has only one.
        return [name for name in named if run in name] + [driver["id"] for driver in state["activedrivers"]]

    yield scene.kit(runner, target=target, conf=SMALL_APPLICATION | WITHOUT_EXECUTORS, at_cluster=live)
    if cluster.cluster is not None:  # its processes have no mark of the test
        wait_until(lambda: not cluster.local().processes(), 30, "no executor and no driver is left")


@contextmanager
def _yarn(scene: Scene) -> Iterator[Kit]:
    yarn: Yarn = scene.fixtures.getfixturevalue("yarn")
    with found_by_hadoop(yarn):
        backend = YarnBackend(scene.submits(), driver_main=DRIVER_MAIN)
        target = SparkTarget("yarn", "cluster")
        conf = spark_settings(yarn.staging) | WITHOUT_EXECUTORS

        def live(run: str) -> list[str]:
            found = json.loads(fetch_text(f"{yarn.url}/ws/v1/cluster/apps"))["apps"] or {}
            ended = {"FINISHED", "FAILED", "KILLED"}
            ours = [each for each in found.get("app", []) if run in each["applicationTags"]]
            # A node kills a process group; PySpark's workers are in another one, and end with their executor.
            containers = [process for each in ours for process in container_processes(each["id"])]
            return [each["id"] for each in ours if each["state"] not in ended] + [
                f"process {process.pid} of a container" for process in containers
            ]

        runner = backend.runner_for(target)
        yield scene.kit(runner, target=target, conf=conf, keeps_records=True, at_cluster=live)


@contextmanager
def _pods(scene: Scene) -> Iterator[Kit]:
    site = scene.fixtures.getfixturevalue("kubernetes_site")
    kit = scene.kit(site.runner(), target=site.target(), check_removed=site.check_nothing_is_left)
    program = kit.written
    kit.written = lambda words: program(f"{site.vanish()}\n{words}")
    yield kit


@contextmanager
def _kubernetes(scene: Scene) -> Iterator[Kit]:
    site = scene.fixtures.getfixturevalue("kubernetes_site")
    conf = {"spark.executor.memory": "512m", "spark.driver.memory": "512m"} | WITHOUT_EXECUTORS

    def live(run: str) -> list[str]:
        pods = site.cluster.pods(site.namespace)
        return [pod["metadata"]["name"] for pod in pods if run in json.dumps(pod["metadata"])]

    yield scene.kit(
        site.runner(spark_submit=None),
        target=site.target(),
        conf=conf,
        at_cluster=live,
        check_removed=site.check_nothing_is_left,
        scheme="local://",
    )


QUICK = {"scripted": _scripted, "stand-in": _stand_in, "pods": _pods}
"""Kinds that start no Spark."""

REAL = {
    "local": _local,
    "standalone-client": lambda scene: _standalone(scene, "client"),
    "standalone-cluster": lambda scene: _standalone(scene, "cluster"),
    "yarn": _yarn,
    "kubernetes": _kubernetes,
}
"""Kinds that start real Spark on its real backend."""

WARM = {"warm": _warm}
"""Drivers in a shared JVM, where user code is a script."""


@contextmanager
def open_kit(
    kind: str, fixtures: pytest.FixtureRequest, *, hosts: str, root: str, folder: Path
) -> Iterator[Kit]:
    """The kit of this kind; drivers that still run are killed afterwards."""
    with ExitStack() as stack:
        session = stack.enter_context(open_session(hosts))
        kit = stack.enter_context((QUICK | REAL | WARM)[kind](Scene(session, root, folder, fixtures)))
        yield kit
        for run in {line["run"] for line in kit.ledger.lines()}:
            if any(found.may_run for found in kit.runner.find(run)):
                kit.runner.kill(run, grace_seconds=0)
