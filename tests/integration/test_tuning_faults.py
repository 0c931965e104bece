"""Tuning under faults: damaged and closed nodes, workers that die or disagree, many writers at once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl
from loguru import logger

from orchestrator.admission.guard import Guard
from orchestrator.history.history import History
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.reading.reader import SpooledLogs
from orchestrator.logs.settings import LogSettings
from orchestrator.model.states import Status
from orchestrator.tuning.record import MAX_DECISIONS
from tests.crash_points import Point
from tests.jobs_support import Deployment, ScriptedDeployment, rescan_often
from tests.servers.zookeeper import zookeeper_client
from tests.tuning_support import (
    HEAP,
    NAME,
    entry,
    heap_of,
    measures,
    plant,
    run_to_end,
    runs_out,
    submitted,
    tuned_job,
    tuning_of,
    tuning_path,
    version_of,
    with_past_run,
)
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

DEEP = b'{"mode": "apply", "decisions": ' + b"[" * 900 + b"]" * 900 + b"}"
DAMAGE = {
    "empty": b"",
    "no UTF-8": b"\xff\xfe",
    "no object": b"[]",
    "nested deeply": b'{"a":' * 50_000,
    "nested": DEEP,
    "another mode": b'{"mode": "always"}',
    "an unknown resource": b'{"pins": {"soul.memory": 512}}',
    "no number": b'{"pins": {"driver.memory": NaN}}',
    "infinite": b'{"caps": {"driver.memory": 1e999}}',
    "negative": b'{"pins": {"driver.memory": -1}}',
    "a text": b'{"pins": {"driver.memory": "2g"}}',
    "large": b'{"name": "' + b"x" * 200_000 + b'"}',
    "no decision": b'{"decisions": [7]}',
}


@pytest.fixture
def deployment(scripted_deployment: ScriptedDeployment) -> Deployment:
    return scripted_deployment


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """The messages of warnings and errors that are logged during the test."""
    found = list[str]()
    sink = logger.add(lambda message: found.append(message.record["message"]), level="WARNING")
    yield found
    logger.remove(sink)


# ---------------------------------------------------------------------- damage
@pytest.mark.parametrize(("damage", "mode"), [("empty", "suggest"), *((each, "apply") for each in DAMAGE)])
def test_a_job_with_a_damaged_tuning_runs_as_asked_for_and_the_damage_stays_to_be_looked_at(
    deployment: Deployment, warnings: list[str], damage: str, mode: str
) -> None:
    plant(deployment.session(), tuning_path(deployment), DAMAGE[damage])
    with_past_run(deployment, job := tuned_job(measures(), mode))
    deployment.worker()
    job_id = run_to_end(deployment, job)
    assert deployment.client.get(job_id).status is Status.SUCCESS
    assert heap_of(deployment, job_id) == 4096
    (said, *_) = [each for each in warnings if tuning_path(deployment) in each]
    assert "cannot be read" in said
    assert f"tuning reset {NAME} --all" in said
    assert version_of(deployment.session(), tuning_path(deployment)) == 0


def test_a_retry_with_a_damaged_tuning_keeps_what_the_attempt_before_had(
    deployment: Deployment, warnings: list[str], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    program = f"if attempt == 1: run_out('driver.heap')\nif attempt == 2: until({str(go)!r}); fail('why')\n"
    deployment.worker()
    job_id = deployment.client.submit(tuned_job(program + measures())).id
    wait_until(lambda: deployment.state(job_id).tuned, 20, "its second attempt has more")
    plant(deployment.session(), tuning_path(deployment), b"by hand")
    go.touch()
    deployment.wait(job_id)
    assert heap_of(deployment, job_id, 3) == 6144
    assert any("runs with the resources of its attempt before" in each for each in warnings)


@pytest.mark.parametrize("damage", [b"by hand", b'{"runs": [{"run": []}]}', b'{"runs": [{"run": {"a": 1}}]}'])
def test_a_job_with_a_damaged_history_runs_as_asked_for(
    deployment: Deployment, warnings: list[str], damage: bytes
) -> None:
    plant(deployment.session(), f"{deployment.settings.root}/history/{NAME}", damage)
    deployment.worker()
    job_id = run_to_end(deployment, tuned_job(measures()))
    assert deployment.client.get(job_id).status is Status.SUCCESS
    assert heap_of(deployment, job_id) == 4096
    assert any(f"{job_id} follow from no past run" in each for each in warnings) is (damage == b"by hand")


HUGE = 10**400
ENTRIES: list[dict[str, object]] = [
    {"settings": 7},
    {"settings": {"spark.driver.memory": HUGE}},
    {"settings": {"spark.master": ["local"]}},
    {"metrics": []},
    {"metrics": {"driver": {"heap_peak_bytes": HUGE}, "seconds": "x"}},
    {"metrics": {"driver": 1, "gc_share": -1e308, "executors": {"lost_memory": 3}}},
    {"short_of": {}, "ended": 7},
    {"ended": "9999-12-31T23:59:59-14:00", "state": ["succeeded"]},
    {"asked": {"spark.driver.memory": []}},
    {"input": HUGE, "class": {}},
]


@pytest.mark.parametrize("facts", ENTRIES)
def test_an_entry_of_the_history_that_no_version_writes_stops_no_job(
    deployment: Deployment, warnings: list[str], facts: dict[str, object]
) -> None:
    job = tuned_job(measures())
    ring = {"name": NAME, "runs": [{**entry(job), **facts}]}
    plant(deployment.session(), f"{deployment.settings.root}/history/{NAME}", json.dumps(ring).encode())
    deployment.worker()
    job_id = run_to_end(deployment, job)
    assert deployment.client.get(job_id).status is Status.SUCCESS
    assert warnings == []


def test_a_tuning_that_this_login_may_not_read_stops_no_job(
    deployment: Deployment, warnings: list[str]
) -> None:
    plant(deployment.session(), tuning_path(deployment), b"{}")
    with_past_run(deployment, job := tuned_job(measures()))
    with zookeeper_client(deployment.settings.zookeeper_hosts) as another:
        another.add_auth("digest", "another:any")
        another.set_acls(tuning_path(deployment), [make_digest_acl("another", "any", all=True)])
        deployment.worker()
        job_id = run_to_end(deployment, job)
        another.set_acls(tuning_path(deployment), OPEN_ACL_UNSAFE)  # for the removal of the root
    assert deployment.client.get(job_id).status is Status.SUCCESS
    assert heap_of(deployment, job_id) == 4096
    assert any(tuning_path(deployment) in each for each in warnings)


# ---------------------------------------------------------------------- several workers
def test_an_adopter_submits_what_the_intent_says_though_everything_else_has_changed(
    deployment: Deployment, tmp_path: Path
) -> None:
    job = tuned_job(measures(), "")
    with_past_run(deployment, job)
    applies = deployment.settings.model_validate(
        {**deployment.settings.model_dump(), "tuning": {"*": {"mode": "apply"}}}
    )
    config = worker_config(applies, "scripted", die_at=Point("submit", after=False))
    first = WorkerProcess("first", tmp_path, config, deployment.settings.zookeeper_hosts)
    job_id = deployment.client.submit(job).id
    with worker_processes(first):
        first.wait_killed()
        first.end_session()
    decided = deployment.state(job_id).tuned
    assert decided is not None
    assert int(decided[HEAP][:-1]) < 4096
    with_past_run(deployment, job, 2, heap=3900)
    deployment.client.tunings.pin(NAME, {"driver.memory": "3g"})
    deployment.worker()  # whose pool only suggests
    deployment.wait(job_id)
    given = submitted(deployment, job_id)
    assert {name: given[name] for name in decided} == decided
    assert deployment.client.get(job_id).attempt == 1
    (run,) = [run for run in deployment.client.history(NAME) if run["job"] == job_id]
    assert run["settings"][HEAP] == decided[HEAP]


def test_workers_of_one_pool_with_other_settings_never_disagree_about_an_attempt(
    deployment: Deployment,
) -> None:
    job = tuned_job(runs_out(), "")
    with_past_run(deployment, job)
    for tuning in ({"mode": "apply"}, {"mode": "apply", "gains": {"idle_fall": 0.1}}, {"mode": "off"}):
        document = {**deployment.settings.model_dump(), "tuning": {"*": tuning}}
        deployment.settings = deployment.settings.model_validate(document)
        deployment.worker()
    jobs = [deployment.client.submit(job).id for _ in range(12)]
    for job_id in jobs:
        deployment.wait(job_id)
        decided = deployment.state(job_id).tuned or {}
        given = submitted(deployment, job_id, 2)
        assert {name: given.get(name) for name in decided} == decided
        assert decided or given[HEAP] == "4g"
    runs = [each.run for each in tuning_of(deployment).decisions if each.run]
    assert len(runs) == len(set(runs)), "one decision per attempt"


def test_the_last_twenty_decisions_are_kept_in_order_one_for_each_attempt(deployment: Deployment) -> None:
    deployment.worker(slots=8)
    job = tuned_job(measures())
    with_past_run(deployment, job)
    jobs = [deployment.client.submit(job).id for _ in range(MAX_DECISIONS + 8)]
    for job_id in jobs:
        deployment.wait(job_id)
    decisions = tuning_of(deployment).decisions
    assert len(decisions) == MAX_DECISIONS
    assert len({each.run for each in decisions}) == MAX_DECISIONS
    assert version_of(deployment.session(), tuning_path(deployment)) == len(jobs) - 1, "one write for each"


def test_an_attempt_that_waits_for_memory_is_decided_and_logged_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["too little memory"] * 3)
    monkeypatch.setattr(Guard, "admit", lambda *_: next(answers, None))
    monkeypatch.setattr(Guard, "capacity", lambda *_: 1)
    rescan_often(monkeypatch)
    with_past_run(deployment, job := tuned_job(measures()))
    deployment.worker()
    job_id = run_to_end(deployment, job)
    assert next(answers, None) is None
    assert heap_of(deployment, job_id) < 4096
    assert version_of(deployment.session(), tuning_path(deployment)) == 0


# ---------------------------------------------------------------------- logs
def test_each_decision_is_a_document_in_the_logs(deployment: Deployment, tmp_path: Path) -> None:
    with_past_run(deployment, job := tuned_job(measures()))
    with LogPipeline(LogSettings(), tmp_path / "logs", "test"):
        deployment.worker()
        job_id = run_to_end(deployment, job)
    found = SpooledLogs(tmp_path / "logs" / "spool").new(LogQuery.of(event_dataset="orchestrator.tuning"))
    (document,) = [dict(each.document) for each in found]
    run = f"{deployment.queues.get(job_id).run_key}-1"
    assert document["event.action"] == "tuning-decision"
    assert (document["job.id"], document["job.name"]) == (job_id, NAME)
    assert document["job.tuning"] == tuning_of(deployment).decisions[-1].model_dump(mode="json")
    assert document["job.tuning"]["run"] == run
    assert document["message"].startswith(f"resources of run {run}: driver.memory: it falls from 4096m to ")


def test_histories_that_cannot_be_recorded_leave_no_suggestion_behind(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(History, "record", lambda *_: None)
    deployment.worker()
    run_to_end(deployment, tuned_job(measures(), "suggest"))
    assert version_of(deployment.session(), tuning_path(deployment)) is None
