"""Planted faults of workers, schedules, limits and servers: each is found at its node."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.doctor import ensemble
from orchestrator.doctor.findings import Finding, FindingKind, Severity
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Queue
from queues.model.codec import encode
from queues.model.operations import Create, Delete, Set
from queues.session import Session, SessionSettings
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.integration.test_doctor import GARBAGE, MINUTE_S, OWN_CLOCK, Practice
from tests.jobs_support import Deployment
from tests.operators_support import JOB


@pytest.fixture
def practice(deployment: Deployment) -> Practice:
    return Practice(deployment)


def found(practice: Practice, kind: FindingKind) -> list[Finding]:
    return [finding for finding in practice.look() if finding.kind is kind]


def with_settings(monkeypatch: pytest.MonkeyPatch, session: Session, **changes: object) -> None:
    """Make the settings of the doctor's session appear as these."""
    known = {"hosts": session.settings.hosts, **changes}
    monkeypatch.setattr(session, "settings", SessionSettings(**known))  # type: ignore[arg-type]  # as given


# ---------------------------------------------------------------------- workers of pools
def test_jobs_of_a_pool_that_no_worker_takes(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    practice.put(pool="lonely")
    practice.staff()
    assert practice.kinds() == {}, "a worker may just be coming"
    practice.later(monkeypatch, MINUTE_S + 1)
    finding = practice.one(FindingKind.UNSERVED_POOL, besides=frozenset(OWN_CLOCK))
    assert (finding.path, finding.severity) == (practice.layout.pool("lonely"), Severity.ERROR)
    assert "1 in accept" in finding.what
    assert "--pool lonely" in finding.remedy
    practice.serve("lonely")
    assert set(practice.kinds()) == OWN_CLOCK


def test_free_slots_of_workers_of_other_pools_do_not_count(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.put(pool="team")
    practice.staff()
    practice.announce("busy", slots=2, running=2)
    practice.serve("team", "busy")
    practice.later(monkeypatch, 301)
    assert set(practice.kinds()) == OWN_CLOCK


def test_a_job_that_waits_for_another_of_its_name_is_not_overdue(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.put(name="alone")
    practice.staff()
    practice.later(monkeypatch, 301)
    assert found(practice, FindingKind.OVERDUE)
    definition = encode({"name": "alone", "python": "pass", "concurrency": 1})
    practice.commit(Set(f"{practice.path()}/definition", definition, -1))
    assert found(practice, FindingKind.OVERDUE), "no other runs"
    practice.make(practice.nodes.name_slot("alone", 0), {"id": "another"})
    assert found(practice, FindingKind.OVERDUE) == []


def test_a_job_that_waits_for_the_water_line_of_its_pool_is_not_overdue(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.put()
    practice.staff()
    practice.queues.pools.change("default", high_water=0.8)
    practice.later(monkeypatch, 301)
    assert found(practice, FindingKind.OVERDUE), "nothing is reported"
    report = {"worker": "w", "job": "first", "push": "orders", "line": 1.0, "high_water": 0.8}
    practice.session.ensure_path(practice.nodes.water_reports("default"))
    path = practice.nodes.water_report("default", "w")
    practice.commit(Create(path, encode(report), ephemeral=True))
    assert found(practice, FindingKind.OVERDUE) == []
    practice.queues.pools.change("default", high_water=0)
    assert found(practice, FindingKind.OVERDUE)


# ---------------------------------------------------------------------- twins
def test_two_workers_of_one_process(practice: Practice) -> None:
    same = {"host": "h", "boot": "b", "pid": 7}
    first = practice.announce("a", **same)
    practice.announce("b", **same)
    practice.announce("c", host="h2", boot="b", pid=7)
    practice.announce("d", host="h", boot="b", pid=8)
    practice.lead()
    finding = practice.one(FindingKind.TWIN_WORKERS)
    assert finding.path == first
    assert "a and b" in finding.what


def test_two_machines_of_one_name(practice: Practice) -> None:
    first = practice.announce("a", host="h", boot="b1", pid=7)
    practice.announce("b", host="h", boot="b2", pid=8)
    practice.lead()
    finding = practice.one(FindingKind.TWIN_WORKERS)
    assert finding.path == first
    assert "both called h" in finding.what


def test_two_workers_of_one_name(practice: Practice, deployment: Deployment) -> None:
    path = practice.announce()
    practice.serve()
    practice.lead()
    assert practice.kinds() == {}
    stranger = Practice(deployment)
    stranger.queues.ensure_pool("team")
    stranger.serve("team")
    finding = practice.one(FindingKind.TWIN_WORKERS)
    assert finding.path == path
    assert f"{stranger.session.id:#x}" in finding.what


# ---------------------------------------------------------------------- sessions, leader, clocks
def test_a_session_that_owns_too_many_paths(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    with_settings(monkeypatch, practice.own.session, max_ephemeral_bytes=2_000)
    path = practice.announce()
    practice.serve()
    practice.lead()
    assert practice.kinds() == {}
    for number in range(30):
        practice.queues.ensure_pool(f"pool-{number}")
        practice.serve(f"pool-{number}")
    finding = practice.one(FindingKind.MANY_EPHEMERALS)
    assert finding.path == path
    assert f"{practice.session.id:#x}" in finding.what


def test_a_leader_that_no_session_owns(practice: Practice) -> None:
    practice.announce()
    practice.make(practice.nodes.leader, {"worker": "worker-7"})
    assert practice.one(FindingKind.NO_LEADER).path == practice.nodes.leader


@pytest.mark.parametrize(("seconds", "words"), [(-30, "behind"), (30, "ahead of")])
def test_the_clock_of_a_worker_by_when_it_began_to_take_jobs(
    practice: Practice, seconds: float, words: str
) -> None:
    path = practice.announce(since=(datetime.now(UTC) - timedelta(hours=1)).isoformat())
    practice.lead()
    assert practice.kinds() == {}, "it was announced anew with its session"
    practice.serve(since=(datetime.now(UTC) + timedelta(seconds=seconds)).isoformat())
    finding = practice.one(FindingKind.CLOCK_SKEW)
    assert finding.path == path
    assert f"s {words} that of ZooKeeper" in finding.what


# ---------------------------------------------------------------------- records, locks
def test_a_record_that_is_nearly_too_large(practice: Practice) -> None:
    practice.staff()
    practice.put()
    record = practice.record()
    payload = {**record.payload, "warning": "w" * 50_000}
    practice.commit(Set(practice.path(), record.evolve(payload=payload).encode(), -1))
    finding = practice.one(FindingKind.LARGE_RECORD)
    assert finding.path == practice.path()
    assert "65,536" in finding.what


def test_an_attempt_that_is_missing_and_the_way_out(practice: Practice) -> None:
    practice.staff()
    run_key = practice.put(Queue.RUNNING, None, AttemptState.STARTED)
    path = attempt_path(practice.path(), run_key, 1)
    assert practice.kinds() == {}
    practice.commit(Delete(path))
    finding = practice.one(FindingKind.UNREADABLE_RECORD)
    assert finding.path == path
    assert f"queue move {JOB} dead --force" in finding.remedy
    assert practice.client.move(JOB, Queue.DEAD, force=True).queue is Queue.DEAD
    practice.client.remove(JOB)
    assert practice.kinds() == {}


def test_a_lock_that_no_session_owns_is_removed_by_mending(practice: Practice) -> None:
    practice.staff()
    practice.put()
    path = practice.layout.lock("default", JOB)
    practice.commit(Create(path, encode({"worker": "worker-7"})))
    finding = practice.one(FindingKind.ORPHAN_LOCK)
    assert (finding.path, finding.fixable) == (path, True)
    practice.doctor.fix(practice.doctor.check())
    assert practice.kinds() == {}
    practice.hold().check()


# ---------------------------------------------------------------------- schedules, limits
def test_a_schedule_whose_run_is_not_enqueued(practice: Practice) -> None:
    practice.staff()
    document = {"name": "often", "python": "pass", "schedule": {"every": "60s"}}
    view = practice.client.schedules.put(build_definition(document, "test"))
    assert practice.kinds() == {}
    node = practice.session.get(view.path)
    assert node is not None
    practice.commit(Set(view.path, node[0].replace(view.handled.encode(), b"2020-01-01T00:00:00Z"), -1))
    finding = practice.one(FindingKind.OVERDUE_SCHEDULE)
    assert finding.path == view.path
    assert "2020-01-01T00:01:00Z" in finding.what
    practice.client.schedules.pause("often")
    assert practice.kinds() == {}


def test_schedules_that_wait_for_each_other(practice: Practice) -> None:
    practice.staff()
    schedules = practice.client.schedules
    for name, after in (("a", "x"), ("b", "a")):
        document = {"name": name, "python": "pass", "schedule": {"after": [after]}}
        schedules.put(build_definition(document, "test"))
    assert practice.kinds() == {}
    node = practice.session.get(practice.nodes.schedule("a"))
    assert node is not None
    # As by two registrations at the same moment.
    practice.commit(Set(practice.nodes.schedule("a"), node[0].replace(b'["x"]', b'["b"]'), -1))
    finding = practice.one(FindingKind.CIRCULAR_SCHEDULES)
    assert finding.path == practice.nodes.schedule("a")
    assert "a after b after a" in finding.what


def test_a_schedule_that_cannot_be_read(practice: Practice) -> None:
    practice.staff()
    practice.make(practice.nodes.schedule("odd"), {"paused": 7})
    assert practice.one(FindingKind.UNREADABLE_SCHEDULE).path == practice.nodes.schedule("odd")


def test_limits_that_cannot_be_read(practice: Practice) -> None:
    practice.staff()
    practice.commit(Set(practice.nodes.config, GARBAGE, -1))
    practice.commit(Set(practice.layout.pool("default"), b'{"weight": -1}', -1))
    assert practice.kinds() == {
        FindingKind.UNREADABLE_LIMITS: [practice.nodes.config, practice.layout.pool("default")]
    }
    for path in (practice.nodes.config, practice.layout.pool("default")):
        practice.commit(Set(path, b"{}", -1))  # the effect of its remedy
    assert practice.kinds() == {}


# ---------------------------------------------------------------------- ZooKeeper
def test_a_server_that_takes_no_connection(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    session = practice.own.session
    with_settings(monkeypatch, session, hosts=f"{session.settings.hosts},127.0.0.1:1")
    finding = practice.one(FindingKind.UNREACHABLE_SERVER)
    assert finding.path == practice.layout.root
    assert "127.0.0.1:1" in finding.what


def test_reads_and_writes_are_timed_and_slow_ones_are_reported(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.staff()
    practice.own.clock.now_ms()  # creates its node
    before = practice.nodes_below()
    monkeypatch.setattr(ensemble, "_SLOW_MS", 0.0)
    (finding,) = found_with_figures(practice)
    assert (finding.severity, finding.path) == (Severity.WARNING, practice.layout.root)
    assert "reads took" in finding.what
    assert "writes took" in finding.what
    assert practice.nodes_below() == before, "what is timed changes nothing"


def found_with_figures(practice: Practice) -> list[Finding]:
    return [finding for finding in practice.doctor.check() if finding.kind is FindingKind.ZOOKEEPER_LATENCY]
