"""Support for tests of schedules: a root with a clock that tests set, and leaders that die or are late."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pytest

from orchestrator.cli.app import run_app
from orchestrator.client.client import Client
from orchestrator.compose import build_client, build_queue_set
from orchestrator.model.definition import Definition
from orchestrator.model.job import JobState
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from orchestrator.model.plan import Plan
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import from_text
from orchestrator.schedules.planner import Planner
from orchestrator.schedules.runs import Enqueue
from orchestrator.schedules.schedules import Schedules
from queues.model.codec import decode
from queues.model.operations import Delete, Operation
from queues.queue_set import QueueSet
from tests.jobs_support import Deployment, python_job
from tests.waiting import wait_until


class Died(BaseException):
    """Ends a leader in the middle of a step, as a kill would."""


class Hall:
    """A root with a clock that tests set, and any number of leaders, each on its own session."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.now = from_text("2026-11-21T11:00:00Z")
        self.nodes = Nodes(deployment.settings.root)
        self.store = self.schedules(self.client())
        self.queues: QueueSet = build_queue_set(deployment.session(), deployment.settings, owner="test")

    def clock(self) -> int:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    def client(self) -> Client:
        return build_client(self.deployment.session(), self.deployment.settings)

    def schedules(self, client: Client) -> Schedules:
        """The schedules as a client sees them, with the clock of this test."""
        return Schedules(self.deployment.session(), self.nodes, self.clock, client.enqueue)

    def leader(
        self,
        submit: Callable[[Client], Enqueue] = lambda client: client.enqueue,
        fence: tuple[Operation, ...] = (),
    ) -> Planner:
        client = self.client()
        return Planner(self.schedules(client), submit=submit(client), get=client.get, fence=lambda: fence)

    def register(self, name: str = "tick", **schedule: Any) -> Definition:
        definition = python_job("pass", name=name, schedule={"every": "1m", **schedule})
        self.store.put(definition)
        return definition

    def runs(self) -> list[str]:
        """The fire times of all runs, from their ids."""
        ids = sorted(job.id for job in self.deployment.client.jobs())
        return [job_id.rpartition("-")[2] for job_id in ids]

    def jobs(self) -> list[str]:
        """The ids of all jobs."""
        return sorted(job.id for job in self.deployment.client.jobs())

    def end(self, job_id: str) -> None:
        """Finish a job, as a worker would."""
        state = JobState.from_payload(self.queues.get(job_id).payload)
        ended = state.evolve(status=Status.SUCCESS).to_payload()
        self.queues.move(job_id, Queue.FINISH, payload=ended)

    def forget(self, job_id: str) -> None:
        """Remove a job whose retention is over."""
        path = self.queues.layout.record(job_id)
        self.queues.remove(job_id, extra=lambda _: [Delete(f"{path}/definition")])

    def node(self, name: str = "tick") -> dict[str, Any]:
        found = self.store.session.get(self.nodes.schedule(name))
        assert found is not None
        return decode(found[0])


def lead_until(leader: Planner, condition: Callable[[], bool], what: str) -> None:
    """Step until the effect shows: changes arrive a moment later."""
    wait_until(lambda: leader.step() <= 5 and condition(), 10, what)


def dies_after_put(client: Client) -> Enqueue:
    def submit(
        definition: Definition,
        plan: Plan | None,
        *,
        job_id: str,
        extra_operations: Sequence[Operation],
        origin: str,
    ) -> NoReturn:
        client.enqueue(definition, plan, job_id=job_id, extra_operations=extra_operations, origin=origin)
        raise Died

    return submit


def interrupted(between: Callable[[str], object]) -> Callable[[Client], Enqueue]:
    """A leader that is paused before its first put, while `between` happens."""

    def make(client: Client) -> Enqueue:
        first = [True]

        def submit(
            definition: Definition,
            plan: Plan | None,
            *,
            job_id: str,
            extra_operations: Sequence[Operation],
            origin: str,
        ) -> JobView:
            if first:
                first.clear()
                between(job_id)
            return client.enqueue(
                definition, plan, job_id=job_id, extra_operations=extra_operations, origin=origin
            )

        return submit

    return make


Type = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(hall: Hall, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    settings = hall.deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", settings.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", settings.root)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(settings.state_dir))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_app(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def hall(deployment: Deployment) -> Hall:
    return Hall(deployment)
