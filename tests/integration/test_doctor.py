"""Each planted fault is found at its node; a check writes nothing; safe repairs are made."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.compose import build_queue_set
from orchestrator.doctor import drivers, left_overs, pools
from orchestrator.doctor.doctor import Doctor
from orchestrator.doctor.findings import Finding, FindingKind, Severity
from orchestrator.doctor.snapshot import ClusterSnapshot
from orchestrator.leader import stale_nodes
from orchestrator.model.job import JobError, JobState
from orchestrator.model.states import Queue, Status
from queues.model.codec import encode
from queues.model.errors import CorruptRecord, QueueError
from queues.model.operations import Create, Delete, Set
from queues.model.record import NewItem, Record
from queues.session import Session
from queues.store import pool_limits
from queues.store.batch import commit_many
from queues.store.commit import Transaction
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.jobs_support import Deployment, ScriptedDeployment
from tests.operators_support import JOB, Stage
from tests.queues_support import count_requests
from tests.sampling import times
from tests.waiting import wait_until

HOUR_S, MINUTE_S = 3600.0, 60.0
GARBAGE = b"\x00\xffnot json"
STARTED = AttemptState.STARTED
OWN_CLOCK = {FindingKind.CLOCK_SKEW}  # additional findings when a test lets time pass for the doctor


class Practice(Stage):
    """A stage with a doctor on another session."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(deployment)
        self.own = self.other("doctor")
        self.doctor = Doctor(self.own)
        self.layout = self.queues.layout

    def look(self) -> list[Finding]:
        """The findings, without the note with the figures of ZooKeeper, which is always there."""
        found = list(self.doctor.check())
        (figures,) = [finding for finding in found if finding.kind is FindingKind.ZOOKEEPER_LATENCY]
        assert figures.path == self.layout.root
        assert "median" in figures.what
        found.remove(figures)
        return found

    def kinds(self) -> dict[FindingKind, list[str]]:
        """The paths of the findings, by kind."""
        found = dict[FindingKind, list[str]]()
        for finding in self.look():
            found.setdefault(finding.kind, []).append(finding.path)
        return found

    def one(self, kind: FindingKind, *, besides: frozenset[FindingKind] = frozenset()) -> Finding:
        """The only finding, apart from those of kinds that accompany it."""
        (finding,) = [finding for finding in self.look() if finding.kind not in besides]
        assert finding.kind is kind
        assert finding.what
        assert finding.remedy
        return finding

    def later(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        """Let the ensemble's time, as the doctor reads it, advance by some seconds."""
        now_ms = self.own.clock.now_ms
        monkeypatch.setattr(self.own.clock, "now_ms", lambda: now_ms() + round(seconds * 1000))

    def record(self, job_id: str = JOB) -> Record:
        return self.queues.get(job_id)

    def path(self, job_id: str = JOB) -> str:
        return self.layout.record(job_id)

    def token(self, job_id: str = JOB, queue: str | None = None) -> str:
        record = self.record(job_id)
        return self.layout.token(queue or record.queue, record.pool, record.token)

    def announce(self, name: str = "worker-7", **more: object) -> str:
        """The announcement of a worker."""
        document = {
            "host": "elsewhere",
            "pid": 1,
            "version": "1",
            "since": datetime.now(UTC).isoformat(),
            "slots": 2,
            "running": 0,
            **more,
        }
        path = self.nodes.worker(name)
        self.session.ensure_path(self.nodes.workers)
        self.commit(Create(path, encode(document), ephemeral=True))
        return path

    def lead(self, **more: object) -> None:
        self.session.ensure_path(self.nodes.config)
        self.commit(Create(self.nodes.leader, encode({"worker": "worker-7", **more}), ephemeral=True))

    def serve(self, pool: str = "default", name: str = "worker-7", **more: object) -> str:
        """A worker takes jobs of a pool."""
        path = self.layout.consumer(f"{name}-{pool}")
        self.session.ensure_path(self.layout.consumers)
        self.commit(Create(path, encode({"worker": name, "pools": [pool], **more}), ephemeral=True))
        return path

    def staff(self) -> None:
        """A worker that leads, so that jobs that are due are no finding."""
        self.announce()
        self.serve()
        self.lead()

    def nodes_below(self) -> dict[str, tuple[object, ...]]:
        """All nodes with data and stat, except the one that is written to read the time."""
        paths = sorted(self.tree() - {self.layout.clock})
        return dict(zip(paths, ((*node,) for node in self.session.get_many(paths) if node), strict=True))


@pytest.fixture
def practice(deployment: Deployment) -> Practice:
    return Practice(deployment)


# ---------------------------------------------------------------------- healthy
def test_a_cluster_with_a_worker_and_jobs_has_nothing_but_notes(deployment: Deployment) -> None:
    deployment.worker()
    ended = deployment.wait(deployment.submit("print('well')"))
    assert ended.job.status is Status.SUCCESS
    wait_until(lambda: deployment.client.status().leader, 20, "the worker leads")
    found = deployment.client.doctor.check()
    assert [finding for finding in found if finding.severity is not Severity.NOTE] == []
    assert [finding.kind for finding in found] == [FindingKind.ZOOKEEPER_LATENCY]


def test_an_unused_root_has_only_notes(practice: Practice) -> None:
    assert practice.kinds() == {}


def test_a_busy_cluster_has_nothing_but_notes(scripted_deployment: ScriptedDeployment) -> None:
    deployment = scripted_deployment
    deployment.worker(slots=2)
    wait_until(lambda: deployment.client.status().leader, 20, "the worker leads")
    doctor = Doctor(build_queue_set(deployment.session(), deployment.settings, owner="doctor"))
    ids = [deployment.submit("sleep(0.1)") for _ in range(20)]
    found, looks = list[Finding](), 0
    while not all(deployment.client.get(job_id).is_final for job_id in ids):
        found += [finding for finding in doctor.check() if finding.kind is not FindingKind.ZOOKEEPER_LATENCY]
        looks += 1
    assert looks > 1
    assert found == []


# ---------------------------------------------------------------------- tokens and records
def test_a_token_without_a_record(practice: Practice) -> None:
    practice.staff()
    practice.put()
    path = practice.token()
    practice.session.ensure_path(practice.path())
    practice.commit(Delete(f"{practice.path()}/definition"), Delete(practice.path()))
    finding = practice.one(FindingKind.TOKEN_WITHOUT_RECORD)
    assert (finding.path, finding.severity, finding.fixable) == (path, Severity.ERROR, True)
    assert JOB in finding.what


def test_a_record_without_a_token(practice: Practice) -> None:
    practice.staff()
    practice.put()
    practice.commit(Delete(practice.token()))
    finding = practice.one(FindingKind.RECORD_WITHOUT_TOKEN)
    assert (finding.path, finding.fixable) == (practice.path(), True)


def test_a_job_in_several_queues(practice: Practice) -> None:
    practice.staff()
    practice.put()
    extra = practice.token(queue=Queue.FINISH)
    practice.commit(Create(extra))
    finding = practice.one(FindingKind.SEVERAL_TOKENS)
    assert (finding.path, finding.fixable) == (extra, True)


def test_a_record_and_a_payload_that_cannot_be_read(practice: Practice) -> None:
    practice.staff()
    for job_id in ("bytes", "payload"):
        practice.put(job_id=job_id)
    practice.commit(Set(practice.path("bytes"), GARBAGE, -1))
    foreign = practice.record("payload").evolve(payload={"status": "NONE OF OURS"})
    practice.commit(Set(practice.path("payload"), foreign.encode(), -1))
    assert practice.kinds() == {
        FindingKind.UNREADABLE_RECORD: sorted([practice.path("bytes"), practice.path("payload")])
    }


def test_a_node_that_is_not_ours(practice: Practice) -> None:
    path = f"{practice.layout.queue('accept', 'default')}/README"
    practice.commit(Create(path))
    finding = practice.one(FindingKind.FOREIGN_NODE)
    assert (finding.path, finding.severity, finding.fixable) == (path, Severity.WARNING, False)


# ---------------------------------------------------------------------- left-overs
def test_the_lock_of_a_job_that_is_gone(practice: Practice) -> None:
    path = practice.layout.lock("default", "gone")
    practice.commit(Create(path, encode({"worker": "worker-7", "since": "then"}), ephemeral=True))
    finding = practice.one(FindingKind.ORPHAN_LOCK)
    assert (finding.path, finding.fixable) == (path, True)
    assert "worker-7 holds gone since then" in finding.what


def test_a_lock_that_is_let_go_of_while_the_doctor_looks_is_no_orphan(practice: Practice) -> None:
    practice.put()
    claim = practice.hold()
    snapshot = ClusterSnapshot.take(practice.own)
    claim.give_up()
    practice.client.remove(JOB)
    assert list(left_overs.check_locks(snapshot)) == []


def test_a_lock_in_another_pool_than_that_of_its_job(practice: Practice) -> None:
    practice.staff()
    practice.put()
    practice.queues.ensure_pool("team")
    path = practice.layout.lock("team", JOB)
    practice.commit(Create(path, encode({"worker": "worker-7"}), ephemeral=True))
    finding = practice.one(FindingKind.ORPHAN_LOCK)
    assert (finding.path, finding.fixable) == (path, True)
    assert "pool default" in finding.what


def test_a_lock_of_a_worker_that_is_not_announced_for_a_minute(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.put()
    claim = practice.hold()
    practice.announce("another")
    practice.lead()
    assert practice.kinds() == {}
    practice.later(monkeypatch, MINUTE_S + 1)
    finding = practice.one(FindingKind.ORPHAN_LOCK, besides=frozenset(OWN_CLOCK))
    assert (finding.path, finding.fixable) == (practice.layout.lock("default", JOB), False)
    practice.doctor.fix([finding])
    assert practice.is_there(finding.path)
    claim.commit(queue="finish", release=True)


def test_a_request_to_stop_that_is_stale_for_a_minute(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.staff()
    practice.put(Queue.FINISH, Status.SUCCESS)
    practice.ask_to_stop(practice.record().run_key)
    practice.commit(Create(practice.stop(job_id="gone"), encode({"run_key": "some"})))
    assert practice.kinds() == {}
    practice.later(monkeypatch, MINUTE_S + 1)
    paths = [practice.stop(), practice.stop(job_id="gone")]
    assert practice.kinds()[FindingKind.STALE_STOP] == sorted(paths)
    practice.later(monkeypatch, 2 * HOUR_S)
    assert practice.kinds()[FindingKind.STALE_STOP] == sorted(paths), "each once, though two look for them"


def test_a_slot_of_a_running_job_that_none_has(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    path = practice.nodes.slot("default", 0)
    practice.make(path, {"id": "gone", "run_key": "some"})
    practice.session.ensure_path(practice.nodes.name_slots("nobody"))
    assert practice.kinds() == {}
    practice.later(monkeypatch, MINUTE_S + 1)
    assert practice.one(FindingKind.STALE_SLOT, besides=frozenset(OWN_CLOCK)).path == path


# ---------------------------------------------------------------------- jobs
def test_jobs_in_dead_are_reported_with_their_reasons(practice: Practice) -> None:
    practice.staff()
    practice.put(job_id="bytes")
    practice.commit(Set(practice.path("bytes"), GARBAGE, -1))
    token = practice.queues.tokens("accept")[0]
    with pytest.raises(CorruptRecord) as raised:
        practice.queues.claim("accept", "default", token)
    assert practice.queues.move_to_dead("accept", "default", token, raised.value)
    practice.put(Queue.DEAD, job_id="handled", error=JobError(error_class="user", message="it broke"))
    found = {finding.path: finding for finding in practice.look()}
    paths = [practice.layout.token("dead", "default", token), practice.token("handled")]
    assert sorted(found) == sorted(paths)
    assert {finding.kind for finding in found.values()} == {FindingKind.JOB_IN_DEAD}
    assert str(raised.value) in found[paths[0]].what
    assert "it broke" in found[paths[1]].what
    assert "deleteall" in found[paths[0]].remedy
    assert "queue replay handled" in found[paths[1]].remedy


def test_a_job_that_warns_and_one_that_is_claimed_again_and_again(practice: Practice) -> None:
    practice.staff()
    practice.put(Queue.RUNNING, Status.RUNNING_WARN, job_id="warns", warning="the backend is silent")
    practice.put(job_id="claimed")
    often = practice.record("claimed").evolve(claims=6)
    practice.commit(Set(practice.path("claimed"), often.encode(), -1))
    found = {finding.kind: finding for finding in practice.look()}
    assert set(found) == {FindingKind.WARNED_JOB, FindingKind.CLAIMED_AGAIN_AND_AGAIN}
    assert found[FindingKind.WARNED_JOB].path == practice.path("warns")
    assert "the backend is silent" in found[FindingKind.WARNED_JOB].what
    assert found[FindingKind.CLAIMED_AGAIN_AND_AGAIN].path == practice.path("claimed")


def test_jobs_that_wait_while_slots_are_free(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    for job_id in ("first", "second"):
        practice.put(job_id=job_id)
    practice.staff()
    assert practice.kinds() == {}
    practice.later(monkeypatch, 301)
    finding = practice.one(FindingKind.OVERDUE, besides=frozenset(OWN_CLOCK))
    assert finding.path == practice.token("first")
    assert "2 due in accept" in finding.what
    practice.queues.pools.change("default", paused=True)
    assert FindingKind.OVERDUE not in practice.kinds(), "they are reported with the pause"
    practice.queues.pools.change("default", paused=False, cap=1)
    assert FindingKind.OVERDUE in practice.kinds()
    practice.make(practice.nodes.slot("default", 0), {"id": "first"})
    assert FindingKind.OVERDUE not in practice.kinds(), "the cap is used up"


def test_jobs_that_wait_while_no_slot_is_free(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    practice.put()
    practice.announce(slots=2, running=2)
    practice.serve()
    practice.lead()
    practice.later(monkeypatch, 301)
    assert set(practice.kinds()) == OWN_CLOCK


# ---------------------------------------------------------------------- drivers
def run(practice: Practice, timeout: dict[str, float]) -> tuple[str, str]:
    """A job whose driver shows progress; returns the paths of attempt and `alive`."""
    run_key = practice.put(Queue.RUNNING, None, STARTED)
    path = attempt_path(practice.path(), run_key, 1)
    definition = encode({"name": "test", "python": "pass", "timeout": timeout})
    practice.commit(
        Set(f"{practice.path()}/definition", definition, -1), Create(f"{path}/alive", b"{}", ephemeral=True)
    )
    return path, f"{path}/alive"


def test_a_driver_without_progress(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    _, alive = run(practice, {"stall": 900, "run": 0})
    practice.hold()
    practice.staff()
    practice.later(monkeypatch, 890)
    assert FindingKind.STUCK_DRIVER not in practice.kinds()
    practice.later(monkeypatch, 11)
    finding = practice.one(FindingKind.STUCK_DRIVER, besides=frozenset(OWN_CLOCK))
    assert finding.path == alive
    assert "timeout.stall (900 s)" in finding.what


def test_a_driver_beyond_its_time_limit(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt, _ = run(practice, {"stall": 0, "run": 900})
    practice.hold()
    practice.staff()
    practice.later(monkeypatch, 950)
    assert FindingKind.STUCK_DRIVER not in practice.kinds()
    practice.later(monkeypatch, 11)
    finding = practice.one(FindingKind.STUCK_DRIVER, besides=frozenset(OWN_CLOCK))
    assert finding.path == attempt
    assert "timeout.run (900 s)" in finding.what


def test_a_driver_without_a_watching_worker(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt, _ = run(practice, {"stall": 0, "run": 0})
    practice.announce(host="another")
    practice.serve()
    practice.lead()
    assert practice.kinds() == {}
    practice.later(monkeypatch, MINUTE_S + 1)
    finding = practice.one(FindingKind.UNWATCHED_DRIVER, besides=frozenset(OWN_CLOCK))
    assert finding.path == attempt
    assert "start a worker on elsewhere" in finding.remedy
    snapshot = ClusterSnapshot.take(practice.own)
    practice.hold()
    assert list(drivers.check_drivers(snapshot)) == [], "taken while the doctor looks"
    assert set(practice.kinds()) == OWN_CLOCK


# ---------------------------------------------------------------------- workers, clocks, pools
def test_jobs_that_are_due_and_no_worker(practice: Practice) -> None:
    practice.put(job_id="due")
    finding = practice.one(FindingKind.NO_WORKER)
    assert (finding.path, finding.severity) == (practice.nodes.workers, Severity.ERROR)
    practice.queues.requeue("due", delay_ms=3_600_000)
    assert practice.kinds() == {}


def test_workers_without_a_leader_and_of_several_versions(practice: Practice) -> None:
    practice.announce("old", version="1")
    practice.announce("new", version="2")
    assert practice.kinds() == {
        FindingKind.NO_LEADER: [practice.nodes.leader],
        FindingKind.VERSIONS_DIFFER: [practice.nodes.workers],
    }
    practice.lead()
    assert "1: old; 2: new" in practice.one(FindingKind.VERSIONS_DIFFER).what


def test_workers_with_several_sparks_for_one_pool(practice: Practice) -> None:
    practice.put(job_id="later", pool="team")
    practice.queues.requeue("later", delay_ms=3_600_000)
    practice.lead()
    practice.announce("one", pools=["team"], sparks={"*": "4.1.4", "team": "4.0.5"})
    practice.announce("two", pools=None, sparks={"*": "4.1.4"})
    practice.announce("elsewhere", pools=["other"], sparks={"*": "4.3.0"})
    practice.announce("older", pools=None)
    finding = practice.one(FindingKind.SPARKS_DIFFER)
    assert finding.path == practice.layout.pool("team")
    assert "pool team use several versions of Spark: 4.0.5: one; 4.1.4: two" in finding.what


@pytest.mark.parametrize(("seconds", "words"), [(10, "behind"), (-10, "ahead of")])
def test_the_clock_of_this_host(
    practice: Practice, monkeypatch: pytest.MonkeyPatch, seconds: float, words: str
) -> None:
    practice.later(monkeypatch, seconds)
    finding = practice.one(FindingKind.CLOCK_SKEW)
    assert finding.path == practice.layout.clock
    assert f"s {words} that of ZooKeeper" in finding.what


def test_the_clock_of_a_worker(practice: Practice) -> None:
    practice.lead()
    practice.announce("early", since=(datetime.now(UTC) - timedelta(hours=1)).isoformat())
    path = practice.announce("late", since=(datetime.now(UTC) + timedelta(seconds=30)).isoformat())
    finding = practice.one(FindingKind.CLOCK_SKEW)
    assert finding.path == path
    assert "late on elsewhere" in finding.what


def test_the_clock_of_a_worker_by_a_job_that_it_took(practice: Practice) -> None:
    practice.staff()
    for job_id, seconds in (("swapped", -3600), ("taken", 30)):
        practice.put(job_id=job_id)
        off = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        lock = encode({"worker": "worker-7", "since": off})
        practice.commit(Create(practice.layout.lock("default", job_id), lock, ephemeral=True))
    finding = practice.one(FindingKind.CLOCK_SKEW)
    assert finding.path == practice.nodes.worker("worker-7")
    assert "s ahead of that of ZooKeeper" in finding.what


def test_the_clock_of_the_worker_that_leads(practice: Practice) -> None:
    path = practice.announce()
    behind = (datetime.now(UTC) - timedelta(seconds=30)).isoformat()
    practice.lead(since=behind)
    finding = practice.one(FindingKind.CLOCK_SKEW)
    assert finding.path == path
    assert "s behind that of ZooKeeper" in finding.what


def test_the_clock_of_zookeeper_that_has_jumped(practice: Practice) -> None:
    path = practice.layout.clock_jump
    practice.commit(Create(path, encode({"ahead_ms": 7_200_000}), ephemeral=True))
    finding = practice.one(FindingKind.CLOCK_SKEW)
    assert finding.path == path
    assert "7200.0 s ahead" in finding.what


def test_a_pool_that_is_paused(practice: Practice) -> None:
    practice.staff()
    for job_id, pool in (("a", "team"), ("b", "team"), ("c", "team.low")):
        practice.put(job_id=job_id, pool=pool)
    practice.queues.pools.change("team", paused=True)
    finding = practice.one(FindingKind.PAUSED_POOL)
    assert (finding.path, finding.severity) == (practice.layout.pool("team"), Severity.WARNING)
    assert "waiting in accept: 3" in finding.what


def test_jobs_in_the_low_lane_do_not_fill_a_paused_pool(practice: Practice) -> None:
    practice.staff()
    for job_id, pool in (("a", "team"), ("b", "team"), ("c", "team.low")):
        practice.put(job_id=job_id, pool=pool)
    practice.queues.pools.change("team", paused=True, bound=3)
    assert set(practice.kinds()) == {FindingKind.PAUSED_POOL}


def test_a_pool_that_is_nearly_full_and_a_folder_that_is_large(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.staff()
    practice.queues.pools.change("default", bound=10)
    for n in range(8):
        practice.put(job_id=f"job-{n}")
    assert practice.kinds() == {}
    practice.put(job_id="job-8")
    folder = practice.layout.queue("accept", "default")
    assert practice.kinds() == {FindingKind.FULL_POOL: [folder]}
    monkeypatch.setattr(pools, "_LARGE", 8)
    assert practice.kinds() == {FindingKind.FULL_POOL: [folder], FindingKind.LARGE_FOLDER: [folder]}


def test_too_many_names_with_a_history_or_a_tuning(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.staff()
    for folder in (practice.nodes.histories, practice.nodes.tunings):
        practice.session.ensure_path(f"{folder}/some")
    monkeypatch.setattr(pools, "_LARGE", 0)
    found = [
        each for each in practice.look() if each.path in {practice.nodes.histories, practice.nodes.tunings}
    ]
    assert [each.kind for each in found] == [FindingKind.LARGE_FOLDER] * 2
    assert all("name jobs by their purpose" in each.remedy for each in found)


def test_a_pool_limit_beyond_the_tools_of_zookeeper(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice.staff()
    practice.queues.pools.change("default", bound=14_364)
    practice.put(job_id="x" * 128)
    assert practice.kinds() == {}
    practice.queues.pools.change("default", bound=14_365)
    finding = practice.one(FindingKind.LARGE_BOUND)
    assert finding.path == practice.layout.pool("default")
    assert "14,364 items with ids of 36 characters, or 6,355 of 128" in finding.what
    practice.queues.pools.change("default", bound=14_364)
    monkeypatch.setattr(pool_limits, "_LS_BYTES", 165)
    assert practice.kinds().get(FindingKind.LARGE_FOLDER) is None
    monkeypatch.setattr(pool_limits, "_LS_BYTES", 164)
    assert practice.kinds()[FindingKind.LARGE_FOLDER] == [practice.layout.queue("accept", "default")]


# ---------------------------------------------------------------------- checks, repairs
def plant(practice: Practice) -> dict[str, str]:
    """Plant damage of many kinds; return the paths by the expected repair."""
    for job_id in ("record-gone", "token-gone", "twice", "garbage", "dead", "warns"):
        practice.put(job_id=job_id)
    paths = {"dead": practice.token("record-gone"), "restored": practice.path("token-gone")}
    practice.commit(
        Delete(f"{practice.path('record-gone')}/definition"), Delete(practice.path("record-gone"))
    )
    practice.commit(Delete(practice.token("token-gone")))
    paths["singled"] = practice.token("twice", Queue.FINISH)
    practice.commit(Create(paths["singled"]))
    practice.commit(Set(practice.path("garbage"), GARBAGE, -1))
    paths["unreadable"] = practice.path("garbage")
    paths["lock"] = practice.layout.lock("default", "gone")
    practice.commit(Create(paths["lock"], encode({"worker": "worker-7"}), ephemeral=True))
    paths["stop"] = practice.stop(job_id="gone")
    practice.commit(Create(paths["stop"], encode({"run_key": "some"})))
    paths["slot"] = practice.nodes.slot("default", 3)
    practice.make(paths["slot"], {"id": "gone", "run_key": "some"})
    paths["foreign"] = f"{practice.layout.stops('default')}/a b"
    practice.commit(Create(paths["foreign"]))
    return paths


FIXABLE = {"dead", "restored", "singled", "lock", "stop", "slot"}


def test_a_look_writes_nothing(practice: Practice, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = plant(practice)
    run(practice, {})
    practice.own.clock.now_ms()  # creates its node
    before = practice.nodes_below()
    practice.later(monkeypatch, 25 * HOUR_S)
    found = practice.look()
    assert practice.nodes_below() == before
    assert {finding.path for finding in found} >= set(paths.values())
    assert {finding.path for finding in found if finding.fixable} >= {paths[name] for name in FIXABLE}
    assert not any(finding.fixed for finding in found)


def test_mending_puts_right_what_is_safe_and_leaves_the_rest(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = plant(practice)
    practice.later(monkeypatch, 2 * MINUTE_S)
    found = practice.doctor.fix(practice.doctor.check())
    fixed = {finding.path for finding in found if finding.fixed}
    assert fixed == {paths[name] for name in FIXABLE}
    left = {finding.path: finding.kind for finding in found if not finding.fixed}
    assert left[paths["unreadable"]] is FindingKind.UNREADABLE_RECORD
    assert left[paths["foreign"]] is FindingKind.FOREIGN_NODE
    assert FindingKind.JOB_IN_DEAD in left.values(), (
        "the token without a record is in dead now and reported there"
    )
    assert practice.is_there(practice.token("token-gone"))
    for name in ("dead", "singled", "lock", "stop", "slot"):
        assert not practice.is_there(paths[name]), name
    assert not practice.is_there(practice.nodes.leader), "a repair leads only for its own time"
    again = practice.doctor.fix(practice.doctor.check())
    assert not any(finding.fixed for finding in again)
    practice.put(job_id="record-gone")
    (last,) = [finding for finding in practice.doctor.fix(practice.doctor.check()) if finding.fixed]
    assert last.kind is FindingKind.SEVERAL_TOKENS, "enqueued anew: the token in dead goes"


def test_nodes_that_the_leader_removes_are_left_to_it(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = plant(practice)
    practice.staff()
    practice.later(monkeypatch, 2 * MINUTE_S)
    found = practice.doctor.fix(practice.doctor.check())
    assert {finding.path for finding in found if finding.fixed} == {
        paths[name] for name in FIXABLE - {"stop", "slot"}
    }
    assert practice.is_there(paths["stop"])
    assert practice.is_there(paths["slot"])


def test_a_lock_that_becomes_valid_in_the_last_moment_stays(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = practice.layout.lock("default", JOB)
    practice.commit(Create(path, encode({"worker": "worker-7"}), ephemeral=True))

    def late(session: Session, steps: Sequence[Transaction]) -> list[QueueError | None]:
        practice.commit(Delete(path))
        practice.put()
        practice.hold()
        return commit_many(session, steps)

    found = practice.doctor.check()
    monkeypatch.setattr(stale_nodes, "commit_many", late)
    practice.doctor.fix(found)
    assert practice.is_there(path)


def test_thousands_of_jobs_are_looked_at_in_few_requests(
    practice: Practice, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    practice.staff()
    payload = JobState.enqueued("test").to_payload()
    parts = times(1, 10)
    practice.queues.pools.change("default", bound=1000 * parts)
    for part in range(parts):
        ids = [f"job-{part}-{n}" for n in range(1000)]
        practice.queues.put_many("accept", [NewItem(payload, job_id) for job_id in ids])
    requests = count_requests(practice.own.session, monkeypatch)
    assert set(practice.kinds()) == {FindingKind.FULL_POOL}
    record_property("requests", requests())
    # One for each of 256 folders of records, and few for their content.
    assert requests() < 350 + 30 * parts
