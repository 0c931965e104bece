"""The reason why a job does not run yet: each real cause, as a view of the job shows it."""

import json
from pathlib import Path

import pytest

from orchestrator.admin.waits import Waits
from orchestrator.admission.guard import Guard
from orchestrator.client.client import Client
from orchestrator.compose import build_queue_set
from orchestrator.model.job import JobState, state_of
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Reason, Waiting
from orchestrator.worker import announcement, transitions
from queues.model.operations import Create
from queues.store.commit import commit
from spark_runner.protocol.attempt import AttemptState
from spark_runner.protocol.errors import SubmissionError
from spark_runner.runners.base import Submission, SubmissionPlace, SubmitRequest
from tests.jobs_support import ScriptedDeployment, python_job
from tests.operators_support import JOB, Stage
from tests.scripted.runner import ScriptedRunner
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcement, "_LOOK_SECONDS", 0.1)


def waits(deployment: ScriptedDeployment, job_id: str, reason: Reason) -> Waiting:
    """Wait until the job waits for this reason; return its text, which both commands show."""

    def said() -> Waiting | None:
        found = deployment.client.detail(job_id).waiting
        return found if found is not None and found.reason == reason else None

    waiting = wait_until(said, 30, f"{job_id} waits for {reason}")
    queue = deployment.client.get(job_id).queue
    (row,) = [row for row in deployment.client.jobs_in_queue(queue) if row["id"] == job_id]
    assert row["waiting"]["reason"] == reason
    return waiting


def occupied(deployment: ScriptedDeployment, go: Path, **fields: object) -> str:
    """A job that runs until the file exists."""
    job_id = deployment.submit(f"until({str(go)!r})", **fields)
    wait_until(
        lambda: [attempt["state"] for attempt in deployment.client.detail(job_id).attempts] == ["started"],
        30,
        "it runs",
    )
    return job_id


def announce(deployment: ScriptedDeployment, name: str, **document: object) -> None:
    """Create the node of a worker."""
    session, nodes = deployment.session(), Nodes(deployment.settings.root)
    session.ensure_path(nodes.workers)
    commit(session, [Create(nodes.worker(name), json.dumps(document).encode(), ephemeral=True)])


# ---------------------------------------------------------------------- in the nodes
def test_without_a_worker_for_its_pool(scripted_deployment: ScriptedDeployment) -> None:
    job_id = scripted_deployment.submit("pass", pool="reports")
    assert "no worker is connected" in waits(scripted_deployment, job_id, Reason.NO_WORKER).message
    announce(scripted_deployment, "of-a-run", pools=[])
    assert "no worker is connected" in waits(scripted_deployment, job_id, Reason.NO_WORKER).message
    announce(scripted_deployment, "theirs", pools=["nightly"])
    assert "no worker serves pool reports" in waits(scripted_deployment, job_id, Reason.NO_WORKER).message
    announce(scripted_deployment, "ours", pools=["reports"])
    assert "next worker" in waits(scripted_deployment, job_id, Reason.TURN).message


@pytest.mark.parametrize("pool", ["team", "team.low"])
def test_in_a_paused_pool(scripted_deployment: ScriptedDeployment, pool: str) -> None:
    stage = Stage(scripted_deployment)
    stage.put(pool=pool)
    stage.queues.ensure_pool("team")
    scripted_deployment.client.pause("team")
    scripted_deployment.worker()
    assert waits(scripted_deployment, JOB, Reason.PAUSED).message.startswith("pool team is paused")
    scripted_deployment.client.resume("team")
    assert scripted_deployment.wait(JOB).waiting is None


def test_until_it_is_due(scripted_deployment: ScriptedDeployment) -> None:
    scripted_deployment.worker()
    job = scripted_deployment.client.submit(python_job("pass"), delay=3600)
    waiting = waits(scripted_deployment, job.id, Reason.DUE)
    assert waiting.message.startswith("it is due at ")
    assert waiting.until == scripted_deployment.client.detail(job.id).due


def test_until_the_next_attempt_may_begin(scripted_deployment: ScriptedDeployment) -> None:
    scripted_deployment.worker()
    job_id = scripted_deployment.submit("fail('no rows today')", retry={"attempts": 2, "delay": "1h"})
    waiting = waits(scripted_deployment, job_id, Reason.BACKOFF)
    assert waiting.message.startswith("attempt 1 has ended; the next may start at ")
    assert "no rows today" in waiting.message
    assert waiting.until


class Unreachable(ScriptedRunner):
    """The runner of a cluster that does not answer."""

    def submit(self, request: SubmitRequest) -> Submission:
        raise SubmissionError(f"no driver for {request.run}: no server listens at rm:8032")


def test_while_its_cluster_is_out_of_reach(scripted_deployment: ScriptedDeployment) -> None:
    scripted_deployment.worker(runner=Unreachable(scripted_deployment.settings.state_dir))
    job_id = scripted_deployment.submit("pass", retry={"attempts": 1, "submissions": 5, "delay": "1h"})
    waiting = waits(scripted_deployment, job_id, Reason.SUBMISSION)
    assert waiting.message.startswith("it could not be submitted; the next try is at ")
    assert "no server listens at rm:8032" in waiting.message


class Broken(ScriptedRunner):
    """A runner with a bug in one of its methods, from a chosen moment on."""

    bug = ""

    def place(self) -> SubmissionPlace:
        self._fail_in("place")
        return super().place()

    def submit(self, request: SubmitRequest) -> Submission:
        self._fail_in("submit")
        return super().submit(request)

    def _fail_in(self, method: str) -> None:
        if method == self.bug:
            raise RuntimeError(f"no rule for {method}")


@pytest.mark.parametrize("method", ["place", "submit"])
def test_after_an_error_of_a_handler(
    scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(transitions, "_HANDLER_ERROR_DELAY_SECONDS", 3600.0)
    runner = Broken(scripted_deployment.settings.state_dir)
    scripted_deployment.worker(runner=runner)
    runner.bug = method
    waiting = waits(scripted_deployment, scripted_deployment.submit("pass"), Reason.BACKOFF)
    assert waiting.message.startswith("error 1 in a row in its handler; the next try is at ")
    assert f"no rule for {method}" in waiting.message
    assert waiting.until


def test_at_the_cap_of_its_pool(scripted_deployment: ScriptedDeployment, tmp_path: Path) -> None:
    scripted_deployment.queues.ensure_pool("team")
    scripted_deployment.client.change_pool("team", cap=1)
    scripted_deployment.worker()
    running = occupied(scripted_deployment, tmp_path / "go", pool="team")
    job_id = scripted_deployment.submit("pass", pool="team")
    waiting = waits(scripted_deployment, job_id, Reason.CAP)
    assert waiting.message == "1 jobs of pool team run, and its cap is 1"
    assert scripted_deployment.client.detail(running).waiting is None
    (tmp_path / "go").touch()
    assert scripted_deployment.wait(job_id).waiting is None


def test_while_a_worker_has_it_in_hand(scripted_deployment: ScriptedDeployment) -> None:
    stage = Stage(scripted_deployment)
    stage.put()
    stage.hold()
    waiting = waits(scripted_deployment, JOB, Reason.HELD)
    assert (waiting.worker, "worker-7" in waiting.message) == ("worker-7", True)


# ---------------------------------------------------------------------- reasons of handlers
def test_at_the_concurrency_of_its_name_until_it_runs(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    worker = scripted_deployment.worker()
    occupied(scripted_deployment, tmp_path / "go", name="alone", concurrency=1)
    job_id = scripted_deployment.submit("pass", name="alone", concurrency=1)
    waiting = waits(scripted_deployment, job_id, Reason.CONCURRENCY)
    assert waiting.worker == worker.name
    assert "concurrency is 1 for jobs named alone, and 1 runs; running now: " in waiting.message
    (tmp_path / "go").touch()
    detail = scripted_deployment.wait(job_id)
    assert (detail.job.status, detail.waiting) == (Status.SUCCESS, None)
    assert "waiting" not in scripted_deployment.queues.get(job_id).payload


def test_without_memory_for_its_driver(scripted_deployment: ScriptedDeployment) -> None:
    worker = scripted_deployment.worker(memory_guard=True)
    job_id = scripted_deployment.submit("pass", spark={"driver": {"memory": "900000g"}})
    waiting = waits(scripted_deployment, job_id, Reason.MEMORY)
    assert waiting.message.startswith(f"worker {worker.name} deferred it at ")
    assert "its driver may use" in waiting.message
    worker.drain()  # the reason of a worker that is gone is not valid any more
    assert "no worker is connected" in waits(scripted_deployment, job_id, Reason.NO_WORKER).message


def test_until_its_driver_begins(scripted_deployment: ScriptedDeployment) -> None:
    hold = scripted_deployment.settings.state_dir / "hold"
    hold.parent.mkdir(parents=True, exist_ok=True)
    hold.touch()  # a cluster that is full
    worker = scripted_deployment.worker()
    job_id = scripted_deployment.submit("pass")
    waiting = waits(scripted_deployment, job_id, Reason.STARTING)
    assert waiting.message == f"worker {worker.name} has submitted its driver, which has not started"
    hold.unlink()
    assert scripted_deployment.wait(job_id).waiting is None


def test_an_attempt_without_a_holder_waits_for_a_worker(scripted_deployment: ScriptedDeployment) -> None:
    Stage(scripted_deployment).put(Queue.RUNNING, None, AttemptState.INTENT)
    waits(scripted_deployment, JOB, Reason.NO_WORKER)
    announce(scripted_deployment, "ours", pools=None)
    assert "no worker holds it" in waits(scripted_deployment, JOB, Reason.TURN).message


@pytest.mark.parametrize("queue", [Queue.FAIL, Queue.SUCCESS, Queue.KILL])
def test_a_job_on_its_way_to_an_end_waits_for_a_worker(
    scripted_deployment: ScriptedDeployment, queue: Queue
) -> None:
    Stage(scripted_deployment).put(queue)
    assert "no worker is connected" in waits(scripted_deployment, JOB, Reason.NO_WORKER).message
    announce(scripted_deployment, "ours", pools=None)
    assert scripted_deployment.client.detail(JOB).waiting is None


# ---------------------------------------------------------------------- reasons of workers
def test_while_all_slots_of_the_workers_are_taken(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    worker = scripted_deployment.worker(slots=1)
    occupied(scripted_deployment, tmp_path / "go")
    job_id = scripted_deployment.submit("pass")
    waiting = waits(scripted_deployment, job_id, Reason.SLOTS)
    assert waiting.message == f"worker {worker.name} claims no new job: its slots are taken, all 1"
    announce(scripted_deployment, "other", refuses={"reason": "pressure", "message": "its disk is busy"})
    both = scripted_deployment.client.detail(job_id).waiting
    assert both is not None
    assert both.message.startswith("none of the 2 workers of its pool claims a new job: ")
    assert "other: its disk is busy" in both.message
    (tmp_path / "go").touch()
    scripted_deployment.wait(job_id)


def test_while_the_host_is_under_pressure(
    scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = ["the host is busy"]
    monkeypatch.setattr(Guard, "refusal", lambda _self: busy[0] if busy else None)
    worker = scripted_deployment.worker()
    job_id = scripted_deployment.submit("pass")
    waiting = waits(scripted_deployment, job_id, Reason.PRESSURE)
    assert waiting.message == f"worker {worker.name} claims no new job: the host is busy"
    busy.clear()
    assert scripted_deployment.wait(job_id).waiting is None


def test_while_its_worker_is_about_to_end(scripted_deployment: ScriptedDeployment) -> None:
    worker = scripted_deployment.worker()
    worker.stop_accepting()  # as `up` does while it ends running jobs
    job_id = scripted_deployment.submit("pass")
    waiting = waits(scripted_deployment, job_id, Reason.DRAINING)
    assert waiting.message == f"worker {worker.name} claims no new job: it is about to end"


def idle() -> announcement.Load:
    return announcement.Load(used=0, held=0, running=(), adopted=0)


def test_a_worker_writes_its_node_when_it_begins_to_refuse_and_not_for_each_word(
    scripted_deployment: ScriptedDeployment,
) -> None:
    session, nodes = scripted_deployment.session(), Nodes(scripted_deployment.settings.root)
    refused: list[Waiting | None] = [None]
    asked: list[int] = []

    def ask() -> Waiting | None:
        asked.append(1)
        return refused[0]

    made = announcement.Announcement(
        session,
        nodes,
        "w",
        slots=1,
        pools=None,
        places=[],
        load=idle,
        refused=ask,
        refresh_seconds=600,
    )

    def version() -> int:
        found = session.exists(nodes.worker("w"))
        assert found is not None
        return found.version

    def asked_twice_more() -> None:
        before = len(asked)
        wait_until(lambda: len(asked) > before + 2, 20, "it has looked")

    made.start()
    try:
        asked_twice_more()
        assert version() == 0
        refused[0] = Waiting(reason=Reason.PRESSURE, message="0.91 of 1")
        wait_until(lambda: version() == 1, 20, "it is written")
        refused[0] = Waiting(reason=Reason.PRESSURE, message="0.92 of 1")
        asked_twice_more()
        assert version() == 1
        refused[0] = None
        wait_until(lambda: version() == 2, 20, "it is written")
    finally:
        made.stop()


def test_a_look_writes_nothing(scripted_deployment: ScriptedDeployment) -> None:
    job_id = scripted_deployment.submit("pass")
    announce(scripted_deployment, "ours")
    anew = build_queue_set(scripted_deployment.session(), scripted_deployment.settings, owner="looks")
    clock = anew.layout.clock  # written to read the ensemble's time
    before = anew.session.exists(clock)
    looks = Client(anew)
    found = looks.detail(job_id).waiting
    assert found is not None
    assert found.reason == Reason.TURN
    assert looks.jobs_in_queue(Queue.ACCEPT)[0]["waiting"]["reason"] == Reason.TURN
    assert anew.session.exists(clock) == before


# ---------------------------------------------------------------------- odd nodes
@pytest.mark.parametrize(
    "announced",
    [{"pools": 7}, {"pools": None, "refuses": "no"}, {"pools": None, "refuses": {"reason": None}}, {}],
    ids=str,
)
def test_the_node_of_a_worker_that_makes_no_sense_breaks_nothing(
    scripted_deployment: ScriptedDeployment, announced: dict[str, object]
) -> None:
    job_id = scripted_deployment.submit("pass")
    announce(scripted_deployment, "odd", **announced)
    waiting = scripted_deployment.client.detail(job_id).waiting
    assert waiting is not None
    assert waiting.reason in {Reason.TURN, Reason.NO_WORKER}


def test_a_reason_of_a_newer_version_and_a_time_that_is_none_are_shown_as_they_are(
    scripted_deployment: ScriptedDeployment,
) -> None:
    job_id = scripted_deployment.submit("pass")
    announce(scripted_deployment, "ours")
    record = scripted_deployment.queues.get(job_id)
    stored = {"reason": "moon", "message": "it is full", "worker": "ours", "at": "tonight"}
    state = state_of(record).evolve(waiting=Waiting(**stored))
    waiting = Waits(scripted_deployment.queues).of(record, state, lock=None, attempt=None)
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("moon", "worker ours deferred it at tonight: it is full")


def test_the_reason_of_a_waiting_job_ends_with_its_status() -> None:
    state = JobState.enqueued("x").evolve(waiting=Waiting(reason=Reason.MEMORY, message="none"))
    assert state.evolve(updated="now").waiting is not None
    assert state.evolve(status=Status.RUNNING).waiting is None
