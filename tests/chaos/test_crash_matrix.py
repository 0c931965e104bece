"""A worker is killed at each step of a job, before and after every commit; the next worker continues.

Whatever the step: the job ends as its program says, its user code starts once in each attempt, its callback
is called at least once and always with the same body, each attempt is in the history once, the job is
archived once, and nothing is left over. `test_trials.py` does the same with the real Spark of each backend.

CI runs each scenario at some of its steps; a whole campaign runs all steps with both kinds of driver.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.handlers import notices
from orchestrator.model.errors import HistoryNotFound
from orchestrator.model.states import Status
from queues.model.errors import ItemNotFound
from spark_runner.runners.base import Runner
from spark_runner.runners.local import LocalRunner
from tests.crash_points import Point, points
from tests.crash_worker import build_runner
from tests.jobs_support import Deployment, python_job
from tests.receiver import ACKNOWLEDGED, REFUSED, Answerer, Receiver, override, receiver
from tests.sampling import sample
from tests.scripted.backend import Backend
from tests.scripted.functions import for_real_drivers
from tests.scripted.judge import left_over, violations
from tests.scripted.ledger import Ledger
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

pytestmark = [pytest.mark.campaign, pytest.mark.usefixtures("judged")]

END_S = 60


@dataclass(frozen=True)
class Scenario:
    """One course of a job; `then` runs after its submission, while the first worker handles it."""

    program: str
    status: Status
    starts: int = 1
    fields: dict[str, Any] = field(default_factory=dict)
    then: Callable[["Scene", str], None] = lambda _scene, _job_id: None
    delay: float = 0.0
    retention: float = 3600.0
    is_removed: bool = False
    answers: tuple[Answerer, ...] = ()  # of the callback; empty: the job has none


@dataclass
class Scene:
    """One orchestrator whose first worker dies."""

    kind: str
    deployment: Deployment
    runner: Runner
    ledger: Ledger
    receiver: Receiver
    folder: Path

    def submit(self, scenario: Scenario) -> str:
        program = scenario.program
        if self.kind != "scripted":
            program = for_real_drivers(program, self.ledger.path)
        callback: dict[str, Any] = {"callback": {"url": self.receiver.url}} if scenario.answers else {}
        self.receiver.answers = list(scenario.answers)
        definition = python_job(program, **scenario.fields, **callback)
        return self.deployment.client.submit(definition, delay=scenario.delay).id

    def first_worker(self, point: Point, scenario: Scenario) -> WorkerProcess:
        config = worker_config(
            self.deployment.settings, self.kind, die_at=point, retention=scenario.retention
        )
        return WorkerProcess("first", self.folder, config, self.deployment.settings.zookeeper_hosts)

    def wait_started(self) -> None:
        wait_until(self.ledger.starts, END_S, "the program runs")

    def wait_end(self, job_id: str, scenario: Scenario) -> None:
        if not scenario.is_removed:
            self.deployment.wait(job_id, timeout=END_S)
            return

        def is_gone() -> bool:
            try:
                self.deployment.client.get(job_id)
            except ItemNotFound:
                return True
            return False

        wait_until(is_gone, END_S, "the job is removed")


def kill_while_it_runs(scene: Scene, job_id: str) -> None:
    scene.wait_started()
    scene.deployment.client.kill(job_id)


def kill_before_it_starts(scene: Scene, job_id: str) -> None:
    scene.deployment.client.kill(job_id)


def kill_in_the_queue_of_the_cluster(scene: Scene, job_id: str) -> None:
    wait_until(lambda: scene.deployment.client.get(job_id).attempt, END_S, "the attempt is announced")
    run = f"{scene.deployment.client.detail(job_id).run_key}-1"
    wait_until(lambda: scene.runner.find(run), END_S, "it is submitted")
    scene.deployment.client.kill(job_id)


SCENARIOS = {
    "succeeds": Scenario("sleep(0.1)", Status.SUCCESS),
    "fails": Scenario("fail('no rows today')", Status.ERROR_FAIL),
    "is-run-again": Scenario(
        "attempt > 1 or fail('not yet')",
        Status.SUCCESS,
        starts=2,
        fields={"retry": {"attempts": 2, "delay": "100ms"}},
    ),
    "vanishes": Scenario(
        "attempt > 1 or vanish()",
        Status.SUCCESS,
        starts=2,
        fields={"retry": {"attempts": 2, "delay": "100ms"}},
    ),
    "runs-too-long": Scenario("hang()", Status.ERROR_FAIL, fields={"timeout": {"run": 1}}),
    "is-killed": Scenario("hang()", Status.KILL, then=kill_while_it_runs),
    "is-killed-in-the-queue-of-the-cluster": Scenario(
        "pass", Status.CANCEL, starts=0, then=kill_in_the_queue_of_the_cluster
    ),
    "is-cancelled": Scenario("pass", Status.CANCEL, starts=0, then=kill_before_it_starts, delay=3600),
    "calls-back": Scenario("pass", Status.SUCCESS, answers=(ACKNOWLEDGED,)),
    "calls-back-after-a-failure": Scenario(
        "fail('no rows today')", Status.ERROR_FAIL, answers=(ACKNOWLEDGED,)
    ),
    "calls-back-after-a-kill": Scenario(
        "hang()", Status.KILL, then=kill_while_it_runs, answers=(ACKNOWLEDGED,)
    ),
    "calls-back-at-the-second-try": Scenario("pass", Status.SUCCESS, answers=(REFUSED, ACKNOWLEDGED)),
    "calls-back-and-is-overridden": Scenario(
        "pass", Status.ERROR_FAIL, answers=(override("ERROR_FAIL"), override("ERROR_FAIL"))
    ),
    "is-removed": Scenario("pass", Status.SUCCESS, retention=0.2, is_removed=True),
}
FULL_CLUSTER = "is-killed-in-the-queue-of-the-cluster"
"""Only the scripted backend can be full on request."""

MATRIX: dict[str, list[Point]] = {
    "succeeds": points("claim accept", "intent", "submit", "running>success", "history", "success>finish"),
    "fails": points("running>fail", "history", "fail>finish"),
    "is-run-again": points("fail>accept"),
    "vanishes": points("running>fail"),
    "runs-too-long": points("running>kill", "killed", "kill>fail", "history"),
    "is-killed": points("running>kill", "history", "kill>finish"),
    FULL_CLUSTER: points("killed", "kill>finish"),
    "is-cancelled": points("accept>kill", "kill>finish"),
    "calls-back": points("call", "success>finish"),
    "calls-back-after-a-failure": points("call", "fail>finish"),
    "calls-back-after-a-kill": points("call", "kill>finish"),
    "calls-back-at-the-second-try": points("success>success"),
    "calls-back-and-is-overridden": points("success>fail"),
    "is-removed": points("mark", "archive", "removal"),
}
IN_CI = 24 / 128
"""Share of the cells of each scenario, at least one cell."""


def _cells() -> dict[str, list[Any]]:
    """The parameters of the tests, by kind of runner."""
    cells: dict[str, list[Any]] = {"scripted": [], "stand-in": []}
    for name, found in MATRIX.items():
        able = [kind for kind in cells if kind == "scripted" or name != FULL_CLUSTER]
        whole = [(kind, point) for kind in able for point in found]
        for kind, point in sample(whole, max(1, int(len(whole) * IN_CI)), f"crash matrix {name}"):
            cells[kind].append(pytest.param(kind, name, point, id=f"{name}-{str(point).replace(' ', '-')}"))
    return cells


CELLS = _cells()


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    monkeypatch.setattr(notices, "FIRST_DELAY_SECONDS", 0.2)
    settings, kind = deployment.settings, str(request.param)
    with ExitStack() as stack:
        runner = build_runner(kind, settings.state_dir)
        ledger = Ledger(tmp_path / "ledger.jsonl")
        if kind == "scripted":
            ledger = stack.enter_context(Backend(settings.state_dir, settings.zookeeper_hosts)).store.ledger
        yield Scene(kind, deployment, runner, ledger, stack.enter_context(receiver()), tmp_path)


@pytest.mark.parametrize(("scene", "name", "point"), CELLS["scripted"], indirect=["scene"])
def test_scripted_jobs_survive_the_death_of_their_worker_at_any_step(
    scene: Scene, name: str, point: Point
) -> None:
    survive(scene, SCENARIOS[name], point)


@pytest.mark.parametrize(("scene", "name", "point"), CELLS["stand-in"], indirect=["scene"])
def test_local_drivers_survive_the_death_of_their_worker_at_any_step(
    scene: Scene, name: str, point: Point
) -> None:
    survive(scene, SCENARIOS[name], point)


def survive(scene: Scene, scenario: Scenario, point: Point) -> None:
    """Run the scenario with a worker that dies at the point, then with another; check the result."""
    hold = scene.deployment.settings.state_dir / "hold"
    if scenario is SCENARIOS[FULL_CLUSTER]:
        hold.touch()
    job_id = scene.submit(scenario)
    run_key = scene.deployment.client.detail(job_id).run_key
    first = scene.first_worker(point, scenario)
    with worker_processes(first):
        scenario.then(scene, job_id)
        first.wait_killed()
        first.end_session()
        scene.deployment.worker(runner=scene.runner, retention=scenario.retention)
        scene.wait_end(job_id, scenario)
    hold.unlink(missing_ok=True)
    expected = {} if scenario.is_removed else {job_id: {scenario.status}}
    removed = {job_id} if scenario.is_removed else set[str]()
    assert violations(scene.deployment.client, scene.ledger, expected) == []
    assert scene.ledger.starts_of(run_key) == scenario.starts
    assert max(scene.ledger.starts().values(), default=1) == 1
    assert _recorded(scene) == [f"{run_key}-{number}" for number in range(1, scenario.starts + 1)]
    bodies = {request.data for request in scene.receiver.requests}
    assert len(bodies) == bool(scenario.answers), bodies
    assert _archived(scene) == ([job_id] if scenario.is_removed else [])
    _assert_nothing_is_left(scene, run_key, removed)


def _archived(scene: Scene) -> list[str]:
    paths = (scene.deployment.settings.state_dir / "archive").glob("*.jsonl")
    return [json.loads(line)["id"] for path in paths for line in path.read_bytes().splitlines()]


def _recorded(scene: Scene) -> list[str]:
    try:
        return [run["run"] for run in scene.deployment.client.history("test")]
    except HistoryNotFound:
        return []


def _assert_nothing_is_left(scene: Scene, run_key: str, removed: set[str]) -> None:
    session, root = scene.deployment.session(), scene.deployment.settings.root

    def left() -> list[str]:
        found = left_over(scene.deployment.client, session, root, removed=removed)
        for number in (1, 2):
            submissions = scene.runner.find(f"{run_key}-{number}")
            found += [f"{each} is there" for each in submissions if each.state not in {"exited", "gone"}]
            found += [f"{each} is not removed" for each in submissions if removed]
        return found

    try:
        wait_until(lambda: not left(), 10, "nothing is left")
    except AssertionError:
        assert left() == []
    if isinstance(scene.runner, LocalRunner):  # its own processes: the fixture `process_mark` looks for them
        scene.deployment.close()
