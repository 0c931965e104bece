"""Each duty of the leader: what it changes, what it keeps, and that two leaders at once do no harm."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from orchestrator.compose import build_queue_set, open_session
from orchestrator.config.settings import Settings
from orchestrator.handlers.hooks import Hook, Hooks
from orchestrator.leader import stale_nodes
from orchestrator.leader.duty import Duty, Fence
from orchestrator.leader.election import Election
from orchestrator.leader.queued_timeout import QueuedTimeout
from orchestrator.leader.queues import Depth, Scrub
from orchestrator.leader.retention import RetentionCount
from orchestrator.leader.stale_slots import StaleSlots
from orchestrator.leader.stale_stops import StaleStops
from orchestrator.metrics.registry import Depths, Metrics
from orchestrator.model.job import JobState
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from queues.admin.scrubber import Scrubber
from queues.model.codec import encode
from queues.model.names import LOW_LANE_SUFFIX
from queues.model.operations import Check, Create, Delete, Operation, Set
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.batch import commit_many
from queues.store.commit import commit
from tests.claims_support import claim_of
from tests.jobs_support import Deployment
from tests.waiting import wait_until

HOUR_MS = 3_600_000


class Hall:
    """The queues of jobs, with several candidates for the leader."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.nodes = settings, Nodes(settings.root)
        self._sessions: list[Session] = []
        self.set = self.queue_set()
        self.session = self.set.session
        self.election = self.elected(self.set)

    def queue_set(self) -> QueueSet:
        session = open_session(self.settings, self.settings.zookeeper_hosts).__enter__()
        self._sessions.append(session)
        made = build_queue_set(session, self.settings, owner=f"worker-{len(self._sessions)}")
        made.ensure_pool()
        return made

    def elected(self, queue_set: QueueSet) -> Election:
        """Lead with this session, whoever led before."""
        election = Election(queue_set.session, self.nodes, "leader")
        if queue_set.session.exists(self.nodes.leader) is not None:
            commit(queue_set.session, [Delete(self.nodes.leader)])
        assert election.look(lambda: None)
        return election

    def put(
        self,
        job_id: str,
        *,
        queue: Queue = Queue.ACCEPT,
        pool: str = "default",
        due_in_ms: int = 0,
        run_key: str = "",
        **state: Any,
    ) -> None:
        """Put a job in this state."""
        fields = {"status": Status.ACCEPT, **state}
        payload = JobState.enqueued("test").evolve(**fields).to_payload()
        due = self.set.clock.now_ms() + due_in_ms
        for name in {pool, pool.removesuffix(LOW_LANE_SUFFIX)}:
            self.set.ensure_pool(name)
        self.set.put(queue, job_id, payload, pool=pool, due_ms=due, run_key=run_key)

    def view(self, job_id: str) -> JobView:
        return JobView.of(self.set.get(job_id))

    def ids(self, queue: Queue, pool: str = "default") -> list[str]:
        return sorted(token.id for token in self.set.tokens(queue, pool))

    def due_ids(self, queue: Queue, pool: str = "default") -> list[str]:
        now = self.set.clock.now_ms()
        return sorted(token.id for token in self.set.tokens(queue, pool) if token.due <= now)

    def run_key(self, job_id: str) -> str:
        return self.set.get(job_id).run_key

    def close(self) -> None:
        for session in self._sessions:
            session.close()


@pytest.fixture
def hall(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[Hall]:
    made = Hall(Settings(zookeeper_hosts=zookeeper_hosts, root=zookeeper_root, session_timeout=4.0))
    yield made
    made.close()


def at_once(*duties: Duty, steps: int = 1) -> None:
    """Several workers that all act as leader."""
    barrier, errors = threading.Barrier(len(duties)), list[BaseException]()

    def run(duty: Duty) -> None:
        barrier.wait(30)
        try:
            for _ in range(steps):
                duty.step()
        except BaseException as error:  # noqa: BLE001 - raised by the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(duty,)) for duty in duties]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


class Noted(Hook):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Status, Queue]] = []

    def after_transition(self, job_id: str, before: JobState, after: JobState, queue: Queue) -> None:
        assert before.status is Status.ACCEPT
        self.seen.append((job_id, after.status, queue))


def queued_timeout(queue_set: QueueSet, hook: Hook | None = None, fence: Fence = tuple) -> QueuedTimeout:
    return QueuedTimeout(queue_set, Hooks([] if hook is None else [hook]), fence)


# ---------------------------------------------------------------------- timeout.queued
def test_a_job_that_waited_for_too_long_fails_in_every_pool(hall: Hall) -> None:
    hall.put("plain", due_in_ms=-10_000, queued_limit=5.0)
    hall.put("low", pool="team.low", due_in_ms=-10_000, queued_limit=5.0)
    hall.put("kept-back", pool="halted", due_in_ms=-10_000, queued_limit=5.0)
    hall.set.pools.change("halted", paused=True)
    hook = Noted()
    queued_timeout(hall.set, hook).step()
    for job_id, pool in (("plain", "default"), ("low", "team.low"), ("kept-back", "halted")):
        job = hall.view(job_id)
        assert (job.queue, job.pool, job.status) == (Queue.FAIL, pool, Status.ERROR_FAIL)
        assert job.error is not None
        assert (job.error.error_class, job.error.type) == ("timeout", "QueuedTimeout")
        assert "timeout.queued (5 s)" in job.error.message
        assert job.ended is not None
        assert Queue.FAIL in job.times
        assert hall.ids(Queue.ACCEPT, pool) == []
        assert hall.ids(Queue.FAIL, pool) == [job_id]
        assert hall.set.session.children(hall.set.layout.locks(pool)) == []
    assert sorted(hook.seen) == [
        (job_id, Status.ERROR_FAIL, Queue.FAIL) for job_id in ("kept-back", "low", "plain")
    ]


def test_a_job_that_may_wait_longer_is_left_alone(hall: Hall) -> None:
    hall.put("no-limit", due_in_ms=-10_000)
    hall.put("in-time", due_in_ms=-10_000, queued_limit=60.0)
    hall.put("not-due", due_in_ms=HOUR_MS, queued_limit=0.001)  # the time before it is due does not count
    hall.put("runs", queue=Queue.RUNNING, due_in_ms=-10_000, queued_limit=5.0, status=Status.RUNNING)
    hall.put("other-status", due_in_ms=-10_000, queued_limit=5.0, status=Status.RUNNING)
    before = {job_id: hall.set.read(job_id) for job_id in hall.ids(Queue.ACCEPT) + hall.ids(Queue.RUNNING)}
    duty = queued_timeout(hall.set)
    for _ in range(2):
        duty.step()
    assert {job_id: hall.set.read(job_id) for job_id in before} == before


def test_a_job_that_is_just_being_started_is_left_to_its_worker(hall: Hall) -> None:
    hall.put("held", due_in_ms=-10_000, queued_limit=5.0)
    claim = claim_of(hall.queue_set(), "held")
    duty = queued_timeout(hall.set)
    duty.step()
    assert hall.view("held").status is Status.ACCEPT
    claim.commit(release=True)
    duty.step()
    assert hall.view("held").status is Status.ERROR_FAIL


def test_the_duty_is_back_when_the_next_job_is_late(hall: Hall) -> None:
    duty = queued_timeout(hall.set)
    rest = duty.step()
    hall.put("soon", queued_limit=1.0)
    assert 0 < duty.step() <= 1.0 < rest
    wait_until(lambda: duty.step() and hall.view("soon").status is Status.ERROR_FAIL, 10, "it fails")


def test_records_of_waiting_jobs_are_read_once(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        hall.put(f"j{n:02}", queued_limit=600.0)
    read, get_many, listing = list[str](), Session.get_many, Session.listing

    def counting(session: Session, paths: Sequence[str]) -> Any:
        read.extend(path for path in paths if "/jobs/" in path)
        return get_many(session, paths)

    def counting_too(session: Session, path: str, *more: Any) -> Any:
        read.append(path)
        return listing(session, path, *more)

    monkeypatch.setattr(Session, "get_many", counting)
    monkeypatch.setattr(Session, "listing", counting_too)
    folder, duty = hall.set.layout.queue(Queue.ACCEPT, "default"), queued_timeout(hall.set)
    duty.step()
    assert len(read) == len({*read}) == 31 + 1  # the records, the folder and that of the pools
    for _ in range(3):
        read.clear()
        duty.step()
        assert folder not in read  # without a change nothing is listed
        assert [path for path in read if "/jobs/" in path] == []
    hall.put("one-more", queued_limit=600.0)
    read.clear()
    duty.step()
    assert [path for path in read if "/jobs/" in path] == [hall.set.layout.record("one-more")]


def test_a_job_that_came_back_is_judged_by_its_new_time(hall: Hall) -> None:
    hall.put("again", due_in_ms=-10_000, queued_limit=60.0)
    duty = queued_timeout(hall.set)
    duty.step()
    hall.set.requeue("again", delay_ms=-120_000)
    duty.step()
    assert hall.view("again").status is Status.ERROR_FAIL


def test_two_who_look_for_late_jobs_fail_each_once(hall: Hall) -> None:
    ids = [f"j{n:03}" for n in range(150)]
    for job_id in ids:
        hall.put(job_id, due_in_ms=-10_000, queued_limit=5.0)
    hook, other = Noted(), hall.queue_set()
    duties = queued_timeout(hall.set, hook), queued_timeout(other, hook)
    at_once(*duties, steps=3)
    assert duties[0].step() > 0
    assert sorted(hook.seen) == [(job_id, Status.ERROR_FAIL, Queue.FAIL) for job_id in ids]
    assert hall.ids(Queue.FAIL) == ids
    assert hall.session.children(hall.set.layout.locks("default")) == []


# ---------------------------------------------------------------------- retention by count
def finished(hall: Hall, *ids: str, pool: str = "default", due_in_ms: int = HOUR_MS) -> None:
    for n, job_id in enumerate(ids):
        hall.put(job_id, queue=Queue.FINISH, pool=pool, due_in_ms=due_in_ms + n * 1000, status=Status.SUCCESS)


def test_the_oldest_of_a_pool_that_keeps_too_many_are_due_now(hall: Hall) -> None:
    finished(hall, "a", "b", "c", "d", "e")
    finished(hall, "f", "g", pool="other")
    RetentionCount(hall.set, lambda: 2, tuple).step()
    assert hall.due_ids(Queue.FINISH) == ["a", "b", "c"]
    assert hall.due_ids(Queue.FINISH, "other") == []
    assert hall.ids(Queue.FINISH) == ["a", "b", "c", "d", "e"]
    assert hall.session.children(hall.set.layout.locks("default")) == []


def test_the_limit_is_asked_at_each_step_and_may_be_none(hall: Hall) -> None:
    finished(hall, "a", "b", "c")
    limits = [0, 3, 1]
    duty = RetentionCount(hall.set, lambda: limits[0], tuple)
    for due in ([], [], ["a", "b"]):
        duty.step()
        assert hall.due_ids(Queue.FINISH) == due
        limits.pop(0)


def test_a_low_lane_counts_with_its_pool(hall: Hall) -> None:
    finished(hall, "a", "c", pool="team")
    finished(hall, "b", "d", pool="team.low", due_in_ms=HOUR_MS + 500)
    RetentionCount(hall.set, lambda: 2, tuple).step()
    assert hall.due_ids(Queue.FINISH, "team") == ["a"]
    assert hall.due_ids(Queue.FINISH, "team.low") == ["b"]


def test_jobs_due_for_removal_count_as_gone(hall: Hall) -> None:
    finished(hall, "gone-1", "gone-2", due_in_ms=-HOUR_MS)
    finished(hall, "a", "b", "c")
    duty = RetentionCount(hall.set, lambda: 2, tuple)
    for _ in range(3):
        duty.step()
    assert hall.due_ids(Queue.FINISH) == ["a", "gone-1", "gone-2"]


def test_many_are_made_due_some_at_a_time(hall: Hall) -> None:
    finished(hall, *(f"j{n:03}" for n in range(130)))
    duty = RetentionCount(hall.set, lambda: 10, tuple)
    assert duty.step() == 0
    assert len(hall.due_ids(Queue.FINISH)) == 100
    assert duty.step() > 0
    assert hall.due_ids(Queue.FINISH) == [f"j{n:03}" for n in range(120)]


def test_two_who_count_make_no_more_due_than_one(hall: Hall) -> None:
    finished(hall, *(f"j{n:02}" for n in range(60)))
    other = hall.queue_set()
    at_once(RetentionCount(hall.set, lambda: 20, tuple), RetentionCount(other, lambda: 20, tuple), steps=3)
    assert hall.due_ids(Queue.FINISH) == [f"j{n:02}" for n in range(40)]


def test_workers_remove_what_was_made_due(deployment: Deployment) -> None:
    hall = Hall(deployment.settings)
    finished(hall, "a", "b", "c")
    deployment.worker()
    RetentionCount(hall.set, lambda: 1, tuple).step()
    wait_until(lambda: hall.ids(Queue.FINISH) == ["c"], 20, "the oldest are removed")
    assert not hall.set.contains("a")
    hall.close()


# ---------------------------------------------------------------------- stop nodes
def stop(hall: Hall, job_id: str, run_key: str, pool: str = "default") -> str:
    path = hall.set.layout.stop(pool, job_id)
    commit(hall.session, [Create(path, encode({"run_key": run_key, "since": "now"}))])
    return path


def stale_stops(hall: Hall, patience: float = 0.0, election: Election | None = None) -> StaleStops:
    return StaleStops(hall.set, (election or hall.election).fence, patience=patience)


def test_stop_nodes_without_a_job_to_stop_are_removed(hall: Hall) -> None:
    hall.put("waits")
    hall.put("runs", queue=Queue.RUNNING, status=Status.RUNNING)
    hall.put("ended", queue=Queue.FINISH, status=Status.SUCCESS, due_in_ms=HOUR_MS)
    hall.put("dead", queue=Queue.DEAD, status=Status.DEAD)
    hall.put("anew", pool="team.low")
    kept = [stop(hall, job_id, hall.run_key(job_id)) for job_id in ("waits", "runs")]
    for job_id in ("ended", "dead"):
        stop(hall, job_id, hall.run_key(job_id))
    stop(hall, "gone", "f00")
    stop(hall, "anew", "of-an-earlier-one", pool="team.low")
    stale_stops(hall).step()
    folder = hall.set.layout.stops("default")
    assert sorted(f"{folder}/{name}" for name in hall.session.children(folder) or ()) == sorted(kept)
    assert hall.session.children(hall.set.layout.stops("team.low")) == []
    assert not hall.set.contains("gone")  # the precondition that there is no job left no node


def test_two_who_look_for_stop_nodes_do_no_harm(hall: Hall) -> None:
    hall.put("waits")
    kept = stop(hall, "waits", hall.run_key("waits"))
    for n in range(50):
        stop(hall, f"gone-{n}", "f00")
    at_once(stale_stops(hall), stale_stops(hall), steps=3)
    assert hall.session.children(kept.rpartition("/")[0]) == ["waits"]


def test_a_request_that_comes_in_the_moment_of_the_removal_stays(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall.put("job", queue=Queue.FINISH, status=Status.SUCCESS, due_in_ms=HOUR_MS)
    path = stop(hall, "job", hall.run_key("job"))

    def retried_and_stopped() -> None:
        commit(hall.session, [Delete(path)])
        state = JobState.enqueued("test").to_payload()
        hall.set.move("job", Queue.ACCEPT, payload=state, delay_ms=0)
        stop(hall, "job", hall.run_key("job"))

    before_the_next_removal(monkeypatch, retried_and_stopped)
    stale_stops(hall).step()
    assert hall.session.exists(path) is not None


def test_a_job_that_comes_in_the_moment_of_the_removal_keeps_its_request(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stop(hall, "job", "this")

    def put_again_and_stopped() -> None:
        commit(hall.session, [Delete(path)])
        hall.put("job", run_key="this")
        stop(hall, "job", "this")

    before_the_next_removal(monkeypatch, put_again_and_stopped)
    stale_stops(hall).step()
    assert hall.session.exists(path) is not None


def test_a_job_that_was_put_anew_in_the_moment_of_the_removal_keeps_its_request(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall.put("job", run_key="other")
    path = stop(hall, "job", "earlier")

    def put_anew_and_stopped() -> None:
        commit(hall.session, [Delete(path)])
        hall.set.remove("job")
        hall.put("job", run_key="this")
        stop(hall, "job", "this")

    before_the_next_removal(monkeypatch, put_anew_and_stopped)
    stale_stops(hall).step()
    assert hall.session.exists(path) is not None


def before_the_next_removal(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Another client does this after the leader's reads and before its multis arrive."""
    acts = [act]

    def late(session: Session, steps: Sequence[Sequence[Operation]]) -> Any:
        if steps and acts:
            acts.pop()()
        return commit_many(session, steps)

    monkeypatch.setattr(stale_nodes, "commit_many", late)


# ---------------------------------------------------------------------- slots
def take_slot(hall: Hall, path: str, job_id: str, run_key: str) -> str:
    hall.session.ensure_path(path.rpartition("/")[0])
    commit(hall.session, [Create(path, encode({"id": job_id, "run_key": run_key, "attempt": 1}))])
    return path


def stale_slots(hall: Hall, patience: float = 0.0, election: Election | None = None) -> StaleSlots:
    return StaleSlots(hall.set, hall.nodes, (election or hall.election).fence, patience=patience)


RUNS: dict[str, Any] = {"queue": Queue.RUNNING, "status": Status.RUNNING}

CASES: list[Any] = [
    pytest.param({**RUNS, "slot": 3}, True, id="runs-in-it"),
    pytest.param({**RUNS, "slot": 3, "status": Status.RUNNING_WARN}, True, id="runs-with-a-warning"),
    pytest.param({**RUNS, "slot": 3, "pool": "team.low"}, True, id="runs-in-the-low-lane"),
    pytest.param({"queue": Queue.KILL, "status": Status.KILL, "slot": 3}, True, id="is-being-killed"),
    pytest.param(None, False, id="is-gone"),
    pytest.param({**RUNS, "slot": 3, "run_key": "another"}, False, id="was-enqueued-anew"),
    pytest.param({**RUNS, "slot": 4}, False, id="runs-in-another"),
    pytest.param({**RUNS, "slot": None}, False, id="runs-without"),
    pytest.param({**RUNS, "slot": 3, "pool": "other"}, False, id="runs-in-another-pool"),
    pytest.param({"slot": 3}, False, id="waits"),
    pytest.param({"queue": Queue.FINISH, "status": Status.KILL, "slot": 3}, False, id="was-killed"),
    pytest.param({"queue": Queue.DEAD, "status": Status.DEAD, "slot": 3}, False, id="is-dead"),
]


@pytest.mark.parametrize(("job", "stays"), CASES)
def test_a_slot_without_a_running_job_is_freed(hall: Hall, job: dict[str, Any] | None, stays: bool) -> None:
    if job is not None:
        hall.put("job", **{"pool": "team", "run_key": "this", "due_in_ms": HOUR_MS, **job})
    path = take_slot(hall, hall.nodes.slot("team", 3), "job", "this")
    stale_slots(hall).step()
    assert (hall.session.exists(path) is not None) is stays
    assert hall.set.contains("job") is (job is not None)


def test_a_slot_of_a_name_is_freed_and_an_empty_folder_is_removed(hall: Hall) -> None:
    hall.put("runs", **RUNS, run_key="this", name_slot=0, name="mine")
    kept = take_slot(hall, hall.nodes.name_slot("mine", 0), "runs", "this")
    other = take_slot(hall, hall.nodes.name_slot("mine", 1), "runs", "this")
    wrong = take_slot(hall, hall.nodes.name_slot("theirs", 0), "runs", "this")
    duty = stale_slots(hall)
    duty.step()
    assert hall.session.exists(kept) is not None
    assert hall.session.exists(other) is None
    assert hall.session.exists(wrong) is None
    duty.step()
    assert hall.session.children(hall.nodes.named) == ["mine"]


def test_nodes_that_say_nothing_of_a_job_are_left_alone(hall: Hall) -> None:
    folder = hall.nodes.slots("team")
    hall.session.ensure_path(folder)
    commit(hall.session, [Create(f"{folder}/0", b"no JSON"), Create(f"{folder}/1", b'{"id": "../x"}')])
    stale_slots(hall).step()
    assert sorted(hall.session.children(folder) or ()) == ["0", "1"]


def test_two_simultaneous_searches_for_stale_slots_do_no_harm(hall: Hall) -> None:
    hall.put("runs", **RUNS, run_key="this", slot=99)
    take_slot(hall, hall.nodes.slot("default", 99), "runs", "this")
    for n in range(50):
        take_slot(hall, hall.nodes.slot("default", n), f"gone-{n}", "f00")
    at_once(stale_slots(hall), stale_slots(hall), steps=3)
    assert hall.session.children(hall.nodes.slots("default")) == ["99"]


def test_a_slot_that_another_leader_freed_and_a_job_took_again_stays(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = take_slot(hall, hall.nodes.slot("default", 0), "gone", "f00")

    def replaced() -> None:
        stale_slots(hall, election=hall.elected(hall.queue_set())).step()
        assert hall.session.exists(path) is None
        hall.put("next", **RUNS, run_key="next", slot=0)
        take_slot(hall, path, "next", "next")

    before_the_next_removal(monkeypatch, replaced)
    stale_slots(hall).step()
    found = hall.session.get(path)
    assert found is not None, "a running job has lost its slot: the cap can be overshot"
    assert b"next" in found[0]


# ---------------------------------------------------------------------- twice, some time apart
class Time:
    """Replaces the module `time`."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(stale_nodes, "time", made)
    return made


def test_a_left_over_is_removed_when_it_was_seen_twice_a_minute_apart(hall: Hall, clock: Time) -> None:
    paths = [stop(hall, "gone", "f00"), take_slot(hall, hall.nodes.slot("default", 0), "gone", "f00")]
    duties: list[Duty] = [
        StaleStops(hall.set, hall.election.fence),
        StaleSlots(hall.set, hall.nodes, hall.election.fence),
    ]
    for seconds, there in ((0.0, True), (59.0, True), (2.0, False)):
        clock.now += seconds
        for duty in duties:
            assert duty.step() == 60
        assert [hall.session.exists(path) is not None for path in paths] == [there, there]


@pytest.mark.parametrize("change", ["anew", "set", "away"])
def test_a_left_over_that_changed_meanwhile_is_watched_anew(hall: Hall, clock: Time, change: str) -> None:
    path = stop(hall, "gone", "f00")
    duty = stale_stops(hall, patience=60)
    duty.step()
    clock.now += 50
    if change == "set":
        commit(hall.session, [Set(path, b'{"run_key": "f01"}', -1)])
    else:
        commit(hall.session, [Delete(path)])
        if change == "away":
            duty.step()
        made_at = time.time_ns() // 1_000_000
        wait_until(lambda: time.time_ns() // 1_000_000 > made_at + 1, 5, "a later millisecond")
        stop(hall, "gone", "f00")
    duty.step()
    clock.now += 50
    duty.step()
    assert hall.session.exists(path) is not None
    clock.now += 50
    duty.step()
    assert hall.session.exists(path) is None


# ---------------------------------------------------------------------- depth
def test_depths_and_the_oldest_are_shown_by_the_leader_alone(hall: Hall) -> None:
    metrics, leads = Metrics(), [True]
    metrics.ask_leader(lambda: leads[0])
    sample = metrics.registry.get_sample_value
    for n in range(3):
        hall.put(f"a{n}", due_in_ms=-60_000 * n)
    hall.put("later", pool="team", due_in_ms=HOUR_MS)
    hall.put("r", **RUNS)
    duty = Depth(hall.set, metrics)
    assert duty.step() > 0
    accept = {"queue": "accept", "pool": "default"}
    assert sample("orchestrator_leader") == 1
    assert sample("orchestrator_queue_depth", accept) == 3
    assert sample("orchestrator_queue_depth", {"queue": "running", "pool": "default"}) == 1
    assert sample("orchestrator_queue_depth", {"queue": "finish", "pool": "team"}) == 0
    assert 120 <= (sample("orchestrator_queue_oldest_seconds", accept) or 0) < 240
    assert sample("orchestrator_queue_oldest_seconds", {"queue": "accept", "pool": "team"}) == 0
    hall.set.remove("a2")
    duty.step()
    assert sample("orchestrator_queue_depth", accept) == 2
    assert 60 <= (sample("orchestrator_queue_oldest_seconds", accept) or 0) < 120
    leads[0] = False
    assert sample("orchestrator_leader") == 0
    assert sample("orchestrator_queue_depth", accept) is None
    assert sample("orchestrator_queue_oldest_seconds", accept) is None


def test_a_pool_that_is_gone_is_not_shown(hall: Hall) -> None:
    metrics = Metrics()
    metrics.ask_leader(lambda: True)
    hall.put("x", pool="team")
    duty = Depth(hall.set, metrics)
    duty.step()
    labels = {"queue": "accept", "pool": "team"}
    assert metrics.registry.get_sample_value("orchestrator_queue_depth", labels) == 1
    hall.set.remove("x")
    layout = hall.set.layout
    commit(hall.session, [Delete(layout.queue(queue, "team")) for queue in Queue])
    commit(hall.session, [Delete(layout.pool("team"))])
    duty.step()
    assert metrics.registry.get_sample_value("orchestrator_queue_depth", labels) is None
    assert metrics.registry.get_sample_value("orchestrator_queue_oldest_seconds", labels) is None


def test_very_many_pools_do_not_make_very_many_series() -> None:
    metrics = Metrics()
    metrics.ask_leader(lambda: True)
    places = [("accept", f"pool-{n:04}") for n in range(1000)]
    metrics.show_depths(Depths(dict.fromkeys(places, 2), {where: float(n) for n, where in enumerate(places)}))
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    series = [sample for sample in samples if sample.name.startswith("orchestrator_")]
    assert len(series) == 1 + 2 * 201
    others = {"queue": "accept", "pool": "(others)"}
    assert metrics.registry.get_sample_value("orchestrator_queue_depth", others) == 1600
    assert metrics.registry.get_sample_value("orchestrator_queue_oldest_seconds", others) == 999


# ---------------------------------------------------------------------- scrub
def test_damage_is_repaired_when_its_time_has_come(hall: Hall) -> None:
    hall.put("damaged")
    layout, (token,) = hall.set.layout, hall.set.tokens(Queue.ACCEPT)
    commit(hall.session, [Delete(layout.token(Queue.ACCEPT, "default", token))])
    scrubber = Scrubber(hall.set.root, hall.set.claimer)
    assert Scrub(scrubber, 600).step() > 250
    assert hall.ids(Queue.ACCEPT) == []
    duty = Scrub(scrubber, 0.1)
    wait_until(lambda: duty.step() and hall.ids(Queue.ACCEPT) == ["damaged"], 10, "it is repaired")


def test_two_who_scrub_at_once_do_no_harm(hall: Hall) -> None:
    for n in range(20):
        hall.put(f"j{n:02}")
    layout = hall.set.layout
    for token in hall.set.tokens(Queue.ACCEPT)[::2]:
        commit(hall.session, [Delete(layout.token(Queue.ACCEPT, "default", token))])
    other = hall.queue_set()
    at_once(
        Scrub(Scrubber(hall.set.root, hall.set.claimer), 0), Scrub(Scrubber(other.root, other.claimer), 0)
    )
    assert hall.ids(Queue.ACCEPT) == [f"j{n:02}" for n in range(20)]


# ---------------------------------------------------------------------- the fence
def test_a_former_leader_removes_nothing(hall: Hall) -> None:
    paths = [stop(hall, "gone", "f00"), take_slot(hall, hall.nodes.slot("default", 0), "gone", "f00")]
    hall.elected(hall.queue_set())
    assert hall.election.is_leader  # it has not noticed
    stale_stops(hall).step()
    stale_slots(hall).step()
    assert all(hall.session.exists(path) for path in paths)
    assert isinstance(hall.election.fence()[0], Check)


def test_no_job_is_failed_or_made_due_by_who_does_not_lead_any_more(hall: Hall) -> None:
    hall.put("late", due_in_ms=-10_000, queued_limit=5.0)
    finished(hall, "a", "b")
    new = hall.elected(hall.queue_set())
    queued_timeout(hall.set, fence=hall.election.fence).step()
    RetentionCount(hall.set, lambda: 1, hall.election.fence).step()
    assert (hall.ids(Queue.ACCEPT), hall.due_ids(Queue.FINISH)) == (["late"], [])
    assert hall.session.children(hall.set.layout.locks("default")) == []
    queued_timeout(hall.set, fence=new.fence).step()
    RetentionCount(hall.set, lambda: 1, new.fence).step()
    assert (hall.ids(Queue.FAIL), hall.due_ids(Queue.FINISH)) == (["late"], ["a"])
