"""Audit: the user of each change is recorded with the change, and one document is written per change."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.archive.base import document_of
from orchestrator.audit.documents import DATASET, AuditLog
from orchestrator.audit.event import AuditEvent
from orchestrator.client.client import Client
from orchestrator.compose import build_client, open_session
from orchestrator.config.settings import Settings
from orchestrator.config.zookeeper import GroupLogin, LoginFile
from orchestrator.handlers.hooks import Hooks
from orchestrator.leader.audit_trail import AuditTrail
from orchestrator.leader.queued_timeout import QueuedTimeout
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.reading.reader import SpooledLogs
from orchestrator.logs.record.document import Days
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.spool.limits import WhenFull
from orchestrator.logs.spool.reader import SpoolReader
from orchestrator.model.act import Act
from orchestrator.model.definition import build_definition
from orchestrator.model.errors import NotStreaming
from orchestrator.model.job import state_of
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from orchestrator.schedules.planner import Planner
from queues.model.codec import decode, encode
from queues.model.errors import AccessDenied, CorruptRecord
from queues.model.operations import Create, Delete, Operation, Set
from queues.session import Acl, Session
from queues.session.requests import Posted
from queues.store.commit import commit
from spark_runner.protocol.attempt import AttemptState
from tests.jobs_support import Deployment, python_job, sleeps
from tests.log_support import read_records
from tests.operators_support import JOB, Stage
from tests.servers.secured import ADA, BOB, Secured
from tests.waiting import wait_until

ME = "ip:127.0.0.1"
PERIODIC = {"name": "nightly", "python": "pass", "file": "job.py", "schedule": {"every": "1d"}}


def events(session: Session, root: str) -> list[AuditEvent]:
    """The entries that wait for a log spool, the oldest first."""
    nodes = Nodes(root)
    found = [(name, session.get(nodes.audit_entry(name))) for name in session.children(nodes.audit) or ()]
    read = [AuditEvent.read(name, node[0]) for name, node in found if node is not None]
    return sorted(read, key=lambda event: event.id)


def events_of(stage: Stage) -> list[AuditEvent]:
    return events(stage.session, stage.nodes.root)


def new_job(stage: Stage) -> None:
    stage.client.submit(python_job("pass"), job_id=JOB)


# ---------------------------------------------------------------------- jobs
def test_the_record_of_a_job_says_who_submitted_it(stage: Stage) -> None:
    new_job(stage)
    submitted = stage.client.detail(JOB).job.submitted
    assert submitted is not None
    assert (submitted.by, submitted.action) == (ME, "submit")
    assert submitted.host
    assert events_of(stage) == []  # the worker that claims it logs them from the record


ACTS = [
    pytest.param(
        {"queue": Queue.FINISH, "status": Status.ERROR_FAIL},
        lambda client: client.retry(JOB),
        ("retry", "finish -> accept"),
        id="retry",
    ),
    pytest.param(
        {},
        lambda client: client.requeue(JOB, delay=60),
        ("requeue", "due in accept after 60 s"),
        id="requeue",
    ),
    pytest.param({}, lambda client: client.move(JOB, Queue.FAIL), ("move", "accept -> fail"), id="move"),
    pytest.param(
        {},
        lambda client: client.move(JOB, Queue.KILL, force=True),
        ("move", "accept -> kill by force"),
        id="force",
    ),
    pytest.param(
        {"queue": Queue.DEAD, "status": Status.DEAD},
        lambda client: client.replay([JOB]),
        ("replay", "dead -> accept"),
        id="replay",
    ),
]


@pytest.mark.parametrize(("state", "act", "expected"), ACTS)
def test_an_act_is_stored_in_the_record_and_has_an_entry(
    stage: Stage, state: dict[str, Any], act: Callable[[Client], object], expected: tuple[str, str]
) -> None:
    run_key = stage.put(**state)
    act(stage.client)
    (action,) = stage.client.detail(JOB).job.actions
    assert (action.action, action.detail, action.by) == (*expected, ME)
    (event,) = events_of(stage)
    assert event.act == action
    assert (event.kind, event.target, event.pool, event.run_key) == ("job", JOB, "default", run_key)


def test_a_job_that_is_removed_before_a_worker_took_it_leaves_who_submitted_and_who_removed_it(
    stage: Stage,
) -> None:
    new_job(stage)
    stage.client.remove(JOB)
    assert sorted((event.act.action, event.act.by) for event in events_of(stage)) == [
        ("remove", ME),
        ("submit", ME),
    ]


def test_an_unreadable_job_that_is_removed_has_an_entry(stage: Stage) -> None:
    new_job(stage)
    token = stage.queues.get(JOB).token
    commit(stage.session, [Set(stage.queues.layout.record(JOB), b"{", -1)])
    assert stage.queues.move_to_dead(Queue.ACCEPT, "default", token, CorruptRecord(JOB, "cut off"))
    stage.client.remove(JOB)
    assert [(event.act.action, event.target) for event in events_of(stage)] == [("remove", JOB)]


def test_a_request_to_stop_says_who_asked_and_has_one_entry(stage: Stage) -> None:
    stage.put(Queue.RUNNING, None, AttemptState.STARTED)
    stage.client.kill(JOB)
    stage.client.kill(JOB)  # requested already: nothing changes
    node = stage.session.get(stage.stop())
    assert node is not None
    assert decode(node[0])["by"] == ME
    assert [(event.act.action, event.act.by) for event in events_of(stage)] == [("kill", ME)]


def test_a_graceful_stop_and_the_kill_after_it_have_an_entry_each(stage: Stage) -> None:
    stage.put(Queue.RUNNING, None, AttemptState.STARTED, mode="streaming")
    stage.client.kill(JOB, graceful=True)
    stage.client.kill(JOB, graceful=True)  # requested already: nothing changes
    stage.client.kill(JOB)
    stage.client.kill(JOB, graceful=True)  # does not weaken the kill
    assert [(event.act.action, event.act.detail) for event in events_of(stage)] == [
        ("kill", "graceful"),
        ("kill", ""),
    ]


def test_a_refused_graceful_stop_has_no_entry_and_no_node(stage: Stage) -> None:
    stage.put(Queue.RUNNING, None, AttemptState.STARTED)
    with pytest.raises(NotStreaming):
        stage.client.kill(JOB, graceful=True)
    assert (events_of(stage), stage.session.exists(stage.stop())) == ([], None)


def test_a_record_keeps_the_last_ten_acts(stage: Stage) -> None:
    new_job(stage)
    for delay in range(12):
        stage.client.requeue(JOB, delay=delay)
    acts = stage.client.detail(JOB).job.actions
    assert [act.detail for act in acts] == [f"due in accept after {delay} s" for delay in range(2, 12)]
    assert len(events_of(stage)) == 12


def test_words_of_others_in_a_record_are_bounded_and_have_no_control_characters(stage: Stage) -> None:
    by = "sasl:ada\x1b]0;x\x07" + "a" * 9000
    forged = Act.model_construct(at="now", by=by, action="submit", host="\u202eh")
    stage.put(submitted=forged)
    submitted = stage.client.detail(JOB).job.submitted
    assert submitted is not None
    assert submitted.by.startswith("sasl:ada\ufffd]0;x\ufffdaaa")
    assert (len(submitted.by), submitted.host) == (200, "\ufffdh")


def test_a_job_of_an_earlier_version_has_no_submitter(stage: Stage) -> None:
    stage.put()
    assert stage.client.detail(JOB).job.submitted is None
    stage.client.remove(JOB)
    assert [event.act.action for event in events_of(stage)] == ["remove"]


def test_the_archive_says_who_submitted_a_job_and_what_was_done_to_it(stage: Stage) -> None:
    new_job(stage)
    stage.client.move(JOB, Queue.FINISH)
    record = stage.queues.get(JOB)
    document = document_of(record, state_of(record), None, [])
    assert (document["submitted"]["by"], document["submitted"]["action"]) == (ME, "submit")
    assert [act["detail"] for act in document["actions"]] == ["accept -> finish"]


def test_a_run_of_a_schedule_says_who_registered_it(stage: Stage) -> None:
    schedules = stage.client.schedules
    start = stage.clock.now_ms()
    schedules.now_ms = lambda: start
    schedules.put(build_definition({**PERIODIC, "schedule": {"every": "1d", "catch_up": True}}, "test"))
    schedules.now_ms = lambda: start + 86_400_000
    Planner(schedules, submit=stage.client.enqueue, get=stage.client.get, fence=tuple).step()
    (job,) = stage.client.list()
    assert job.submitted is not None
    assert (job.submitted.by, job.submitted.detail) == (ME, f"schedule nightly, registered by {ME}")


# ---------------------------------------------------------------------- limits and pools
def test_changes_of_limits_say_who_made_them_from_what_to_what(stage: Stage) -> None:
    client = stage.client
    client.config.change(warn_after=7)
    client.change_pool("default", cap=3, weight=2)
    client.change_pool("default", cap=3)  # nothing changes
    client.pause("default")
    changes = [(c.pool, c.by, dict(c.before), dict(c.after)) for c in client.changes()]
    assert changes == [
        ("", ME, {"warn_after": None}, {"warn_after": 7}),
        ("default", ME, {"weight": 1, "cap": 0}, {"weight": 2, "cap": 3}),
        ("default", ME, {"paused": False}, {"paused": True}),
    ]
    assert client.pools()["default"].paused
    found = [(event.kind, event.target, event.before, event.after) for event in events_of(stage)]
    assert found == [
        ("config", "config", changes[0][2], changes[0][3]),
        ("pool", "default", changes[1][2], changes[1][3]),
        ("pool", "default", changes[2][2], changes[2][3]),
    ]


def test_the_node_of_a_pool_keeps_the_last_ten_changes_and_survives_what_others_write(stage: Stage) -> None:
    for cap in range(1, 13):
        stage.client.change_pool("default", cap=cap)
    assert [change.after for change in stage.client.changes()] == [{"cap": cap} for cap in range(3, 13)]
    odd = b'{"cap": 5, "changed": [7, {"at": 3}, {"by": "x"}]}'
    commit(stage.session, [Set(stage.queues.layout.pool("default"), odd, -1)])
    assert stage.client.changes() == []
    assert stage.client.change_pool("default", cap=6).cap == 6
    assert [change.after for change in stage.client.changes()] == [{"cap": 6}]


def test_the_removal_of_a_pool_has_an_entry(stage: Stage) -> None:
    stage.queues.ensure_pool("old")
    stage.client.remove_pool("old")
    assert [(e.act.action, e.kind, e.target) for e in events_of(stage)] == [("remove", "pool", "old")]


def test_changes_of_schedules_say_who_made_them(stage: Stage) -> None:
    schedules = stage.client.schedules
    definition = build_definition(PERIODIC, "test")
    assert schedules.put(definition).registered_by == ME
    schedules.pause("nightly")
    schedules.pause("nightly")  # already paused
    changed = schedules.resume("nightly").changed
    assert changed is not None
    assert (changed.action, changed.by) == ("resume", ME)
    schedules.put(definition)
    schedules.remove("nightly")
    actions = [event.act.action for event in events_of(stage)]
    assert sorted(actions) == sorted(["register", "pause", "resume", "register", "remove"])
    assert {event.kind for event in events_of(stage)} == {"schedule"}


def test_the_operator_of_a_repair_is_recorded(stage: Stage) -> None:
    new_job(stage)
    commit(
        stage.session,
        [Delete(stage.queues.layout.token(Queue.ACCEPT, "default", stage.queues.get(JOB).token))],
    )
    doctor = stage.client.doctor
    doctor.fix(doctor.check())
    (event,) = events_of(stage)
    assert (event.kind, event.act.action, event.act.by) == ("cluster", "mend", ME)
    assert "record-without-token: 1" in event.act.detail


def a_schedule(stage: Stage, name: str = "nightly") -> None:
    stage.client.schedules.put(build_definition({**PERIODIC, "name": name}, "test"))


CHANGES: dict[str, tuple[Callable[[Stage], object], Callable[[Stage], str]]] = {
    "kill": (lambda stage: stage.client.kill(JOB), Stage.stop),
    "requeue": (
        lambda stage: stage.client.requeue(JOB, delay=60),
        lambda stage: stage.queues.layout.record(JOB),
    ),
    "remove": (lambda stage: stage.client.remove(JOB), lambda stage: stage.queues.layout.record(JOB)),
    "limit": (lambda stage: stage.client.config.change(warn_after=7), lambda stage: stage.nodes.config),
    "pool": (lambda stage: stage.client.pause("default"), lambda stage: stage.queues.layout.pool("default")),
    "pool removed": (
        lambda stage: stage.client.remove_pool("old"),
        lambda stage: stage.queues.layout.pool("old"),
    ),
    "schedule": (a_schedule, lambda stage: stage.nodes.schedule("nightly")),
    "schedule paused": (
        lambda stage: stage.client.schedules.pause("old"),
        lambda stage: stage.nodes.schedule("old"),
    ),
    "schedule removed": (
        lambda stage: stage.client.schedules.remove("old"),
        lambda stage: stage.nodes.schedule("old"),
    ),
}


@pytest.mark.parametrize(("act", "changed"), CHANGES.values(), ids=[*CHANGES])
def test_an_entry_is_made_in_the_multi_of_its_change(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Stage], object],
    changed: Callable[[Stage], str],
) -> None:
    stage.put()
    stage.queues.ensure_pool("old")
    a_schedule(stage, "old")
    session = stage.deployment.queues.session
    multis, post = list[dict[str, Operation]](), session.post

    def noted(operations: Sequence[Operation]) -> Posted:
        multis.append({each.path: each for each in operations})
        return post(operations)

    monkeypatch.setattr(session, "post", noted)
    act(stage)
    (multi,) = [multi for multi in multis if any(path.startswith(stage.nodes.audit) for path in multi)]
    assert isinstance(multi.get(changed(stage)), Create | Set | Delete), multi


# ---------------------------------------------------------------------- documents
@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogPipeline]:
    with LogPipeline(LogSettings(), tmp_path / "logs", "test") as made:
        yield made


def audit_log(logs: LogPipeline) -> AuditLog:
    return AuditLog(logs, Days("logs"))


def documents(folder: Path) -> list[dict[str, Any]]:
    found = SpooledLogs(folder / "logs" / "spool").new(LogQuery.of(event_dataset=DATASET))
    return [dict(entry.document) for entry in found]


def test_the_leader_brings_each_entry_into_the_logs_once_and_removes_it(
    stage: Stage, logs: LogPipeline, tmp_path: Path
) -> None:
    stage.client.change_pool("default", cap=3)
    new_job(stage)
    stage.client.requeue(JOB)
    AuditTrail(stage.queues, stage.nodes, tuple, audit_log(logs)).step()
    assert events_of(stage) == []
    pool, job = documents(tmp_path)
    assert pool["message"] == f"{ME}: set pool default"
    assert (pool["user.name"], json.loads(pool["audit.after"])) == (ME, {"cap": 3})
    assert (job["event.action"], job["job.id"], job["audit.target"]) == ("requeue", JOB, JOB)
    assert job["host.name"]
    assert job["process.pid"]


def test_a_leader_that_ends_before_the_removal_has_it_written_again_under_the_same_id(
    stage: Stage, logs: LogPipeline, tmp_path: Path
) -> None:
    stage.client.change_pool("default", cap=3)
    late = (Create(stage.nodes.root),)  # refused, as is the fence of a former leader
    AuditTrail(stage.queues, stage.nodes, lambda: late, audit_log(logs)).step()
    assert len(events_of(stage)) == 1
    AuditTrail(stage.queues, stage.nodes, tuple, audit_log(logs)).step()
    assert events_of(stage) == []
    (spool,) = (tmp_path / "logs" / "spool").iterdir()
    found = [record for record in read_records(SpoolReader(spool)) if DATASET.encode() in record]
    assert len(found) == 2
    assert len({record.split(b"\n")[0] for record in found}) == 1  # the same id and index: stored once


def test_nothing_is_removed_that_no_spool_has_taken(stage: Stage, tmp_path: Path) -> None:
    stage.client.change_pool("default", cap=3)
    closed = LogPipeline(LogSettings(), tmp_path / "logs", "test")
    AuditTrail(stage.queues, stage.nodes, tuple, audit_log(closed)).step()
    assert len(events_of(stage)) == 1


def test_a_full_spool_drops_other_logs_before_who_submitted_a_job(stage: Stage, tmp_path: Path) -> None:
    new_job(stage)
    full = LogSettings(max_bytes=64 * 1024**2, when_full=WhenFull.DROP_BY_LEVEL)
    with LogPipeline(full, tmp_path / "logs", "test") as pipeline:
        assert pipeline.spool is not None
        while pipeline.spool.append("logs", b'{"message": "%b"}' % (b"x" * 900_000)):
            pass
        audit_log(pipeline).write_submission(stage.queues.get(JOB))
        assert [document["event.action"] for document in documents(tmp_path)] == ["submit"]


def test_an_entry_that_cannot_be_read_becomes_a_document_that_says_so(
    stage: Stage, logs: LogPipeline, tmp_path: Path
) -> None:
    stage.client.change_pool("default", cap=3)
    for name, data in (("2026-01-01T00:00:00.000Z-x", b"\xff{"), ("y", b'{"act": 3}')):
        commit(stage.session, [Create(stage.nodes.audit_entry(name), data)])
    AuditTrail(stage.queues, stage.nodes, tuple, audit_log(logs)).step()
    assert events_of(stage) == []
    assert sorted(document["event.action"] for document in documents(tmp_path)) == [
        "set",
        "unreadable",
        "unreadable",
    ]


def test_forged_entries_choose_neither_index_nor_id(stage: Stage, logs: LogPipeline, tmp_path: Path) -> None:
    stage.session.ensure_path(stage.nodes.audit)
    for name, at in (
        ('a","_index":"b', "9999-01-01T00:00:00Z"),
        ("b", "1971-01-01T00:00:00Z"),
        ("c", "never"),
    ):
        entry = {"act": {"at": at, "by": "x", "action": "set"}, "kind": "pool", "target": "t", "id": "other"}
        commit(stage.session, [Create(stage.nodes.audit_entry(name), encode(entry))])
    AuditTrail(stage.queues, stage.nodes, tuple, audit_log(logs)).step()
    assert events_of(stage) == []
    (spool,) = (tmp_path / "logs" / "spool").iterdir()
    found = [record for record in read_records(SpoolReader(spool)) if DATASET.encode() in record]
    created = [json.loads(record.split(b"\n")[0])["create"] for record in found]
    assert len({each["_index"] for each in created}) == 1  # that of today
    assert [each["_id"].partition("-")[0] for each in created] == ["sha256", "b", "c"]


def test_a_job_that_waited_for_too_long_leaves_who_submitted_it(
    stage: Stage, logs: LogPipeline, tmp_path: Path
) -> None:
    stage.client.submit(python_job("pass", timeout={"queued": "1s"}), job_id=JOB, delay=-10)
    QueuedTimeout(stage.queues, Hooks(), tuple, audit_log(logs)).step()
    assert stage.client.get(JOB).queue is Queue.FAIL
    assert [document["event.action"] for document in documents(tmp_path)] == ["submit"]


# ---------------------------------------------------------------------- several users, one tree
def settings_of(secured: Secured, folder: Path, user: str, *, group: bool = True) -> Settings:
    """The settings of a team member: a personal login and that of the team."""
    for login in (ADA, BOB):
        (folder / login.user).write_text(login.secret(), "utf-8")
    (folder / "team").write_text("the-secret-of-the-team", "utf-8")
    return Settings(
        zookeeper_hosts=f"{secured.plain}/{folder.name}",
        zookeeper_login=LoginFile(user=user, password_file=folder / user),
        zookeeper_group=GroupLogin(user="team", password_file=folder / "team") if group else None,
        zookeeper_acl=Acl.CREATOR,
        state_dir=folder / "state",
        session_timeout=4.0,
        kill_grace=2.0,
    )


def test_ada_submits_and_bob_kills_and_both_are_recorded(
    secured: Secured, tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    ada, bob = settings_of(secured, tmp_path, "ada"), settings_of(secured, tmp_path, "bob")
    deployment = Deployment(ada)
    with LogPipeline(LogSettings(), tmp_path / "logs", "test") as logs:
        try:
            deployment.worker(logs=logs)
            job_id = deployment.submit(sleeps(tmp_path / "pid"))
            wait_until((tmp_path / "pid").exists, 60, "it runs")
            with open_session(bob, bob.zookeeper_hosts) as session:
                client = build_client(session, bob)
                client.kill(job_id)
                client.wait(job_id, 60)
                job = client.detail(job_id).job
            assert job.status is Status.KILL
            assert job.submitted is not None
            assert job.submitted.by == "sasl:ada"
            assert [(act.action, act.by) for act in job.actions] == [("kill", "sasl:bob")]
            wait_until(lambda: len(documents(tmp_path)) == 2, 30, "both are in the logs")
            recorded = sorted((each["event.action"], each["user.name"]) for each in documents(tmp_path))
            assert recorded == [("kill", "sasl:bob"), ("submit", "sasl:ada")]
        finally:
            deployment.close()


def test_without_the_login_of_the_team_bob_may_not_touch_what_ada_made(
    secured: Secured, tmp_path: Path
) -> None:
    ada = settings_of(secured, tmp_path, "ada")
    with open_session(ada, ada.zookeeper_hosts) as session:
        build_client(session, ada).submit(python_job("pass"), job_id=JOB)
    bob = settings_of(secured, tmp_path, "bob", group=False)
    with pytest.raises(AccessDenied), open_session(bob, bob.zookeeper_hosts) as session:
        build_client(session, bob).kill(JOB)
