"""Periodic jobs: registered by name, enqueued by the leader, each fire time once."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client.client import Client
from orchestrator.compose import build_queue_set
from orchestrator.leader.election import Election
from orchestrator.model import plan as plans
from orchestrator.model.definition import Definition
from orchestrator.model.errors import CorruptSchedule, DefinitionError, ScheduleNotFound
from orchestrator.model.job import JobState
from orchestrator.model.job_view import JobView
from orchestrator.model.plan import Plan, decode_plan, plan_path
from orchestrator.model.schedule import Schedule
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import from_text, local_time, to_text
from orchestrator.schedules.known import KnownSchedules
from orchestrator.schedules.planner import Planner
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.runs import MAX_CATCH_UP, Enqueue
from orchestrator.schedules.store import ScheduleStore
from queues.model.codec import encode
from queues.model.errors import Conflict, InvalidName
from queues.model.operations import PERM_ALL, PERM_READ, Create, Delete, Grant, Operation, Set
from queues.store.commit import commit
from spark_runner.sql.text.errors import SqlError
from tests.claims_support import lose_reply
from tests.jobs_support import Deployment, python_job
from tests.queues_support import expire
from tests.schedules_support import Died, Hall, Type, dies_after_put, interrupted, lead_until

MINUTE, HOUR = 60, 3600


# ---------------------------------------------------------------------- the store
def test_a_registered_schedule_shows_its_next_fire_time(hall: Hall) -> None:
    hall.store.put(
        python_job("pass", name="nightly", schedule={"cron": "0 6 * * *", "timezone": "Europe/Berlin"})
    )
    hall.register("ticking", every="90s")
    nightly, ticking = hall.store.list()
    assert (nightly.name, nightly.when, nightly.timezone) == ("nightly", "0 6 * * *", "Europe/Berlin")
    assert nightly.next == "2026-11-22T05:00:00Z"
    assert (nightly.last, nightly.paused, nightly.overlap, nightly.catch_up) == (None, False, "skip", False)
    assert (ticking.name, ticking.when, ticking.next) == ("ticking", "every 90s", "2026-11-21T11:01:30Z")
    assert hall.store.get("ticking") == ticking


def test_its_node_is_json_that_a_person_can_read(hall: Hall) -> None:
    hall.register()
    children = hall.store.session.children(hall.nodes.schedule("tick"))
    assert children == [hall.node()["registration"]]
    node = hall.node()
    changed = node.pop("changed")
    assert (changed["action"], changed["by"], node.pop("registered_by")) == (
        "register",
        *["ip:127.0.0.1"] * 2,
    )
    assert node == {
        "registration": children[0],
        "paused": False,
        "registered": "2026-11-21T11:00:00Z",
        "handled": "2026-11-21T11:00:00Z",
        "last": None,
        "skipped": [],
        "definition": {
            "name": "tick",
            "python": "pass",
            "file": "job.py",
            "retry": {"attempts": 1},
            "schedule": {"every": 60.0},
        },
    }


def test_registering_again_replaces_the_definition_and_leaves_it_paused(hall: Hall) -> None:
    hall.register()
    hall.store.pause("tick")
    view = hall.store.put(python_job("print(2)", name="tick", schedule={"every": "5m"}))
    assert (view.paused, view.when, view.definition["python"]) == (True, "every 5m", "print(2)")
    assert len(hall.store.list()) == 1


def test_a_replaced_definition_counts_from_now_on_only_if_its_times_are_others(hall: Hall) -> None:
    hall.register()
    hall.pass_time(30 * MINUTE)
    assert (
        hall.store.put(python_job("2", name="tick", schedule={"every": "1m"})).handled
        == "2026-11-21T11:00:00Z"
    )
    assert (
        hall.store.put(python_job("2", name="tick", schedule={"every": "2m"})).handled
        == "2026-11-21T11:30:00Z"
    )


def test_changes_at_the_same_moment_are_all_kept(hall: Hall) -> None:
    class Slow(ScheduleStore):
        def read(
            self, name: str, wake: Callable[[], None] | None = None
        ) -> tuple[ScheduleRecord, int] | None:
            found = super().read(name, wake)
            hall.store.pause(name)
            return found

    hall.register()
    slow = Slow(hall.store.session, hall.nodes, hall.clock)
    slow.put(python_job("print(2)", name="tick", schedule={"every": "1m"}))
    view = hall.store.get("tick")
    assert (view.paused, view.definition["python"]) == (True, "print(2)")


def test_a_schedule_that_is_not_there_is_said_to_be_missing(hall: Hall) -> None:
    for act in (hall.store.get, hall.store.pause, hall.store.resume, hall.store.remove):
        with pytest.raises(ScheduleNotFound, match="no schedule has the name 'absent'"):
            act("absent")
        with pytest.raises(InvalidName):
            act("../jobs")
    assert hall.store.list() == ()


def test_a_definition_that_could_never_run_is_not_registered(hall: Hall) -> None:
    with pytest.raises(DefinitionError, match="'test' has no schedule"):
        hall.store.put(python_job("pass"))
    with pytest.raises(DefinitionError, match=r"job\.py:1:"):
        hall.store.put(python_job("def", schedule={"every": "1h"}))
    with pytest.raises(SqlError):
        hall.store.put(Definition(name="x", script="SELEC 1", schedule=Schedule(every=60)))
    assert hall.store.list() == ()


def test_a_node_that_is_no_schedule_is_listed_as_such_keeps_no_other_back_and_can_be_removed(
    hall: Hall,
) -> None:
    hall.register()
    commit(hall.store.session, [Create(hall.nodes.schedule("broken"), b"{not json")])
    other = encode({**hall.node(), "handled": "soon"})
    commit(hall.store.session, [Create(hall.nodes.schedule("timeless"), other)])
    commit(hall.store.session, [Create(hall.nodes.schedule("copied"), encode(hall.node()))])
    assert [view.name for view in hall.store.list() if view.error is None] == ["tick"]
    assert len(hall.store.list()) == 4
    for name, words in (("broken", "Expecting"), ("timeless", "handled"), ("copied", "definition of 'tick'")):
        with pytest.raises(CorruptSchedule, match=words):
            hall.store.get(name)
    hall.pass_time(MINUTE)
    hall.leader().step()
    assert hall.runs() == ["20261121T110100Z"]
    hall.store.remove("broken")
    with pytest.raises(ScheduleNotFound):
        hall.store.get("broken")


def close(hall: Hall, path: str, grants: int) -> None:
    """Give all logins these rights alone."""
    assert hall.store.session.access.set([(path, [Grant(grants, "world", "anyone")], -1)]) == [True]


def test_a_schedule_or_a_success_that_is_closed_to_workers_keeps_no_other_back(hall: Hall) -> None:
    hall.register()
    hall.register("closed")
    hall.store.put(python_job("pass", name="report", schedule={"after": ["load"]}))
    paths = [hall.nodes.schedule("closed"), hall.nodes.success("load")]
    for path in paths:
        close(hall, path, PERM_ALL & ~PERM_READ)
    hall.pass_time(MINUTE)
    assert hall.leader().step() <= 5
    assert hall.jobs() == ["tick-20261121T110100Z"]
    reasons = {name: str(record) for name, record in hall.store.records().items() if name == "closed"}
    assert "cannot be read" in reasons["closed"]
    for path in paths:
        close(hall, path, PERM_ALL)
    hall.leader().step()
    assert hall.jobs() == ["closed-20261121T110100Z", "tick-20261121T110100Z"]


# ---------------------------------------------------------------------- a run
def test_the_run_of_a_fire_time_is_enqueued_when_it_has_come(hall: Hall) -> None:
    hall.register()
    leader = hall.leader()
    hall.pass_time(MINUTE - 0.001)
    assert leader.step() == pytest.approx(0.001)
    assert hall.runs() == []
    hall.pass_time(0.001)
    assert leader.step() == 5
    assert hall.runs() == ["20261121T110100Z"]
    view = hall.store.get("tick")
    assert (view.last, view.last_run) == ("2026-11-21T11:01:00Z", "tick-20261121T110100Z")
    assert view.next == "2026-11-21T11:02:00Z"


def test_a_run_is_a_job_like_any_other_with_its_fire_time(hall: Hall) -> None:
    script = "CREATE TABLE t USING print; INSERT INTO t SELECT '${fire_time}' AS at"
    hall.store.put(Definition(name="sql", script=script, schedule=Schedule(every=60), labels={"team": "a"}))
    hall.pass_time(MINUTE)
    hall.leader().step()
    detail = hall.deployment.client.detail("sql-20261121T110100Z")
    assert (detail.job.name, detail.job.status) == ("sql", Status.ACCEPT)
    fire_time = "2026-11-21T11:01:00Z"
    assert detail.definition["labels"] == {"team": "a", "fire_time": fire_time}
    assert detail.definition["variables"] == {"fire_time": fire_time}
    assert "schedule" not in detail.definition


def test_the_leader_passes_the_plan_of_a_run_on_and_compiles_nothing(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "CREATE TABLE t USING print; INSERT INTO t SELECT '${fire_time}' AS at"
    hall.store.put(Definition(name="sql", script=script, schedule=Schedule(every=60)))
    hall.store.put(Definition(name="sql", script=f"-- again\n{script}", schedule=Schedule(every=60)))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the leader compiles")

    monkeypatch.setattr(plans, "check_script", refuse)
    hall.pass_time(MINUTE)
    hall.leader().step()
    detail = hall.deployment.client.detail("sql-20261121T110100Z")
    found = hall.store.session.get(plan_path(detail.record_path))
    assert found is not None
    plan = decode_plan(found[0])
    assert plan["values"] == ["2026-11-21T11:01:00Z"]
    assert [step["line"] for step in plan["steps"]] == [2, 2]


def test_a_schedule_that_comes_later_is_seen_by_the_leader(hall: Hall) -> None:
    leader = hall.leader()
    assert leader.step() == 5
    hall.register()
    hall.pass_time(MINUTE)
    lead_until(leader, lambda: hall.runs() == ["20261121T110100Z"], "the new schedule has its run")
    hall.store.put(python_job("pass", name="tick", schedule={"every": "1h", "overlap": "queue"}))
    hall.pass_time(2 * MINUTE)
    leader.step()
    assert hall.runs() == ["20261121T110100Z"]
    hall.store.remove("tick")
    hall.pass_time(HOUR)
    lead_until(leader, lambda: leader.step() == 5, "the leader has no schedule")
    assert hall.runs() == ["20261121T110100Z"]


def test_changes_are_seen_also_after_the_session_was_lost(hall: Hall) -> None:
    hall.register(overlap="queue")
    client = hall.client()
    store = ScheduleStore(hall.deployment.session(), hall.nodes, hall.clock)
    leader = Planner(store, submit=client.enqueue, get=client.get, fence=tuple)
    leader.step()
    expire(store.session)
    hall.register("other", overlap="queue")
    hall.store.remove("tick")
    hall.pass_time(MINUTE)
    leader.step()
    assert [job.id for job in hall.deployment.client.jobs()] == ["other-20261121T110100Z"]


def test_a_change_without_a_watch_event_is_found_by_the_rescan(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall.register(every="1h", overlap="queue")
    leader = hall.leader()
    leader.step()
    monkeypatch.setattr(KnownSchedules, "on_change", lambda _self, _name: None)
    hall.register(every="1m")
    hall.pass_time(MINUTE)
    leader.step()
    assert hall.runs() == []
    leader._known._rescan_at = 0  # noqa: SLF001 - the minute is over
    leader.step()
    assert hall.runs() == ["20261121T110100Z"]


def test_the_ensembles_clock_is_the_one_that_counts(deployment: Deployment) -> None:
    store = deployment.client.schedules
    view = store.put(python_job("pass", name="tick", schedule={"every": "1s"}))
    now = build_queue_set(deployment.session(), deployment.settings, owner="test").clock.now_ms()
    assert view.next is not None
    assert abs(from_text(view.next) - now) < 10_000
    planner = Planner(store, submit=deployment.client.enqueue, get=deployment.client.get, fence=tuple)
    loops = 0
    while not (runs := list(deployment.client.jobs())):
        threading.Event().wait(planner.step())
        loops += 1
        assert loops < 50
    assert runs[0].id.startswith("tick-")


# ---------------------------------------------------------------------- exactly once
def test_leaders_that_act_at_once_enqueue_each_fire_time_once(hall: Hall) -> None:
    hall.register(overlap="queue", catch_up=True)
    put: Counter[str] = Counter()

    def counting(client: Client) -> Enqueue:
        def submit(
            definition: Definition,
            plan: Plan | None,
            *,
            job_id: str,
            extra_operations: Sequence[Operation],
            origin: str,
        ) -> JobView:
            job = client.enqueue(
                definition, plan, job_id=job_id, extra_operations=extra_operations, origin=origin
            )
            put[job_id] += 1
            return job

        return submit

    leaders = [hall.leader(counting) for _ in range(3)]
    hall.pass_time(30 * MINUTE)
    start = threading.Barrier(len(leaders))
    errors: list[BaseException] = []

    def lead(leader: Planner) -> None:
        start.wait()
        try:
            while leader.step() < 5:
                pass
        except BaseException as error:  # noqa: BLE001 - raised by the test
            errors.append(error)

    threads = [threading.Thread(target=lead, args=[leader]) for leader in leaders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    expected = [f"tick-20261121T11{minute:02}00Z" for minute in range(1, 31)]
    assert put == Counter(expected)
    assert [f"tick-{run}" for run in hall.runs()] == expected
    assert hall.node()["handled"] == "2026-11-21T11:30:00Z"
    assert hall.node()["skipped"] == []


def test_a_leader_that_dies_between_put_and_mark_leaves_a_run_that_is_not_put_again(hall: Hall) -> None:
    hall.register()
    hall.pass_time(MINUTE)
    with pytest.raises(Died):
        hall.leader(dies_after_put).step()
    assert hall.node()["last"] is None
    run_key = hall.queues.get("tick-20261121T110100Z").run_key
    hall.leader().step()
    assert hall.node()["last"] == "2026-11-21T11:01:00Z"
    assert hall.runs() == ["20261121T110100Z"]
    assert hall.queues.get("tick-20261121T110100Z").run_key == run_key


def test_a_run_that_was_put_but_not_marked_before_a_long_outage_was_not_missed(hall: Hall) -> None:
    hall.register()
    hall.pass_time(MINUTE)
    with pytest.raises(Died):
        hall.leader(dies_after_put).step()
    hall.pass_time(HOUR)
    hall.leader().step()
    node = hall.node()
    # It is recorded as under way, so that nothing may overlap it.
    assert hall.runs() == ["20261121T110100Z"]
    assert node["last"] == "2026-11-21T11:01:00Z"
    assert [item["time"] for item in node["skipped"]] == ["2026-11-21T11:02:00Z"] + [
        f"2026-11-21T12:0{minute}:00Z" for minute in (0, 1)
    ]


def test_a_leader_that_was_paused_repeats_no_run_that_has_been_removed_meanwhile(hall: Hall) -> None:
    hall.register()

    def others_lead(job_id: str) -> None:
        hall.leader().step()
        hall.end(job_id)
        hall.forget(job_id)

    late = hall.leader(interrupted(others_lead))
    hall.pass_time(MINUTE)
    late.step()
    assert hall.runs() == []
    hall.pass_time(MINUTE)
    late.step()
    assert hall.runs() == ["20261121T110200Z"]


def test_a_schedule_that_is_paused_in_the_last_moment_does_not_run(hall: Hall) -> None:
    hall.register()
    leader = hall.leader(interrupted(lambda _: hall.store.pause("tick")))
    hall.pass_time(MINUTE)
    leader.step()
    leader.step()
    assert hall.runs() == []


def test_a_schedule_that_is_registered_anew_does_not_repeat_what_the_old_one_did(hall: Hall) -> None:
    hall.register()
    leader = hall.leader()
    hall.pass_time(MINUTE)
    leader.step()
    hall.end("tick-20261121T110100Z")
    hall.forget("tick-20261121T110100Z")
    hall.store.remove("tick")
    hall.register()
    for each in (leader, hall.leader()):
        each.step()
    assert hall.runs() == []


# ---------------------------------------------------------------------- registered anew
def register_anew(hall: Hall) -> None:
    """Remove the schedule and register another program under its name: versions begin at 0 again."""
    hall.store.remove("tick")
    hall.store.put(python_job("print('new')", name="tick", schedule={"every": "1m"}))


def assert_only_the_new_one_runs(hall: Hall, runs: Sequence[str] = ()) -> None:
    assert (hall.node()["definition"]["python"], hall.node()["last"]) == ("print('new')", None)
    assert hall.runs() == list(runs)
    hall.pass_time(MINUTE)
    hall.leader().step()
    assert hall.runs() == [*runs, "20261121T110200Z"]
    definition = hall.deployment.client.detail("tick-20261121T110200Z").definition
    assert definition["python"] == "print('new')"


def test_a_late_leader_neither_enqueues_the_old_program_nor_brings_it_back(hall: Hall) -> None:
    hall.register()
    late = hall.leader(interrupted(lambda _: register_anew(hall)))
    hall.pass_time(MINUTE)
    late.step()
    late.step()
    assert_only_the_new_one_runs(hall)


def test_a_leader_that_is_late_after_its_put_does_not_bring_the_old_program_back(hall: Hall) -> None:
    def late(client: Client) -> Enqueue:
        def submit(
            definition: Definition,
            plan: Plan | None,
            *,
            job_id: str,
            extra_operations: Sequence[Operation],
            origin: str,
        ) -> JobView:
            job = client.enqueue(
                definition, plan, job_id=job_id, extra_operations=extra_operations, origin=origin
            )
            register_anew(hall)
            return job

        return submit

    hall.register(overlap="queue")
    hall.pass_time(MINUTE)
    hall.leader(late).step()
    assert_only_the_new_one_runs(hall, ["20261121T110100Z"])


def replaced_before_the_resend(hall: Hall, monkeypatch: pytest.MonkeyPatch, *, arrives: bool) -> list[Any]:
    """Let the next change of the schedule's node lose its reply and be sent again to another registration."""
    path = hall.nodes.schedule("tick")

    def changes(operations: Sequence[Operation]) -> bool:
        return any(o.path == path and isinstance(o, Set | Delete) for o in operations)

    def meanwhile() -> None:
        if hall.store.session.exists(path) is None:
            hall.register()
        register_anew(hall)

    return lose_reply(monkeypatch, changes, meanwhile, arrives=arrives)


@pytest.mark.parametrize("arrives", [True, False])
def test_a_leader_whose_reply_was_lost_does_not_bring_the_old_program_back(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    hall.register(overlap="queue")
    hall.pass_time(MINUTE)
    lost = replaced_before_the_resend(hall, monkeypatch, arrives=arrives)
    hall.leader().step()
    assert lost
    assert_only_the_new_one_runs(hall, ["20261121T110100Z"])


@pytest.mark.parametrize("act", [ScheduleStore.pause, ScheduleStore.remove])
def test_an_act_on_the_old_registration_does_not_apply_to_the_new_one(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, act: Callable[[ScheduleStore, str], object]
) -> None:
    hall.register()
    hall.pass_time(MINUTE)
    lost = replaced_before_the_resend(hall, monkeypatch, arrives=True)
    late = ScheduleStore(hall.deployment.session(), hall.nodes, hall.clock)
    if act is ScheduleStore.pause:  # it reads again, and then applies to the new one
        act(late, "tick")
        assert hall.node()["definition"]["python"] == "print('new')"
        hall.store.resume("tick")
    else:
        act(late, "tick")
    assert lost
    assert_only_the_new_one_runs(hall)


def test_a_leader_does_nothing_once_another_one_was_elected(hall: Hall) -> None:
    def elected() -> tuple[Operation, ...]:
        session = hall.deployment.session()
        if session.exists(hall.nodes.leader) is not None:
            commit(session, [Delete(hall.nodes.leader)])
        election = Election(session, hall.nodes, "leader")
        assert election.look(lambda: None)
        return election.fence()

    hall.register()
    late = hall.leader(interrupted(lambda _: elected()), fence=elected())
    hall.pass_time(MINUTE)
    late.step()
    assert hall.runs() == []
    assert hall.node()["last"] is None
    hall.leader(fence=elected()).step()
    assert hall.runs() == ["20261121T110100Z"]
    hall.pass_time(HOUR)  # it skips nothing of another registration either
    before = hall.node()
    late.step()
    assert hall.node() == before


def test_a_schedule_of_an_older_version_gets_a_registration_when_it_is_served(hall: Hall) -> None:
    path = hall.nodes.schedule("tick")
    hall.register()
    document = hall.node()
    del document["registration"]
    hall.store.remove("tick")
    commit(hall.store.session, [Create(path, encode(document))])
    hall.pass_time(MINUTE)
    hall.leader().step()
    assert hall.runs() == ["20261121T110100Z"]
    assert hall.store.session.children(path) == [hall.node()["registration"]]
    hall.store.remove("tick")
    assert hall.store.session.exists(path) is None


# ---------------------------------------------------------------------- a clock that was ahead
def fire_times(minutes: Iterable[int]) -> list[str]:
    start = from_text("2026-11-21T11:00:00Z")
    return [to_text(start + minute * 60_000).replace("-", "").replace(":", "") for minute in minutes]


@pytest.mark.parametrize("catch_up", [True, False])
def test_after_a_clock_that_was_ahead_every_fire_time_has_its_run_once(hall: Hall, catch_up: bool) -> None:
    hall.register(overlap="queue", catch_up=catch_up, every="10m")
    leader = hall.leader()
    hall.pass_time(2 * HOUR)  # a failover to a server whose clock is wrong
    leader.step()
    hall.pass_time(20 * MINUTE)
    leader.step()
    put_early = hall.runs()
    assert put_early == fire_times(range(10, 150, 10) if catch_up else [120, 140])
    for run in put_early:  # they are finished and removed: their ids are free
        hall.end(f"tick-{run}")
        hall.forget(f"tick-{run}")
    hall.pass_time(-2 * HOUR)  # its clock is set right, 20 minutes later
    leader.step()
    assert hall.node()["handled"] == "2026-11-21T11:20:00Z"
    for _ in range(15):
        hall.pass_time(10 * MINUTE)
        hall.leader().step()
    everything = fire_times(range(30, 180, 10))
    assert hall.runs() == [run for run in everything if run not in put_early]
    assert "early" not in hall.node()


def test_a_schedule_that_was_registered_by_a_clock_that_was_ahead_runs_from_now_on(hall: Hall) -> None:
    hall.pass_time(2 * HOUR)
    hall.register()
    hall.pass_time(-2 * HOUR)
    leader = hall.leader()
    leader.step()
    hall.pass_time(MINUTE)
    leader.step()
    assert hall.runs() == ["20261121T110100Z"]


def test_a_clock_that_is_ahead_a_second_time_repeats_nothing_of_the_first(hall: Hall) -> None:
    hall.register(overlap="queue", every="10m")
    put = list[str]()

    def step(seconds: float) -> None:
        hall.pass_time(seconds)
        hall.leader().step()
        for run in hall.runs():  # it is finished and removed: its id is free
            hall.end(f"tick-{run}")
            hall.forget(f"tick-{run}")
            put.append(run)

    for seconds in (2 * HOUR, -2 * HOUR, 10 * MINUTE, 20 * MINUTE, -20 * MINUTE):
        step(seconds)
    assert put == fire_times([120, 10, 30])
    for _ in range(12):
        step(10 * MINUTE)
    assert sorted(put) == fire_times(range(10, 140, 10))


def test_other_times_that_are_registered_after_a_clock_was_ahead_are_not_taken_for_those_that_ran(
    hall: Hall,
) -> None:
    hall.register(every="1h", overlap="queue")
    leader = hall.leader()
    hall.pass_time(2 * HOUR)
    leader.step()
    hall.pass_time(-2 * HOUR)
    leader.step()
    before = hall.runs()
    hall.register(every="10m", overlap="queue")
    hall.pass_time(10 * MINUTE)
    hall.leader().step()
    assert [run for run in hall.runs() if run not in before] == fire_times([10])


# ---------------------------------------------------------------------- overlap
def test_with_skip_no_run_is_enqueued_while_one_has_not_ended_and_that_is_reported(hall: Hall) -> None:
    hall.register()
    leader = hall.leader()
    for _ in range(3):
        hall.pass_time(MINUTE)
        leader.step()
    assert hall.runs() == ["20261121T110100Z"]
    view = hall.store.get("tick")
    assert [item.time for item in view.skipped] == ["2026-11-21T11:02:00Z", "2026-11-21T11:03:00Z"]
    assert view.skipped[0].reason == "tick-20261121T110100Z had not ended (overlap: skip)"
    assert view.rule == "skip: a fire time has no run while tick-20261121T110100Z has not ended"
    hall.end("tick-20261121T110100Z")
    assert hall.store.get("tick").rule == "skip"
    hall.pass_time(MINUTE)
    leader.step()
    assert hall.runs() == ["20261121T110100Z", "20261121T110400Z"]


def test_the_rule_of_a_schedule_whose_last_run_is_damaged_or_gone_is_shown(hall: Hall) -> None:
    hall.register()
    assert hall.store.get("tick").rule == "skip"
    hall.pass_time(MINUTE)
    hall.leader().step()
    run = "tick-20261121T110100Z"
    commit(hall.store.session, [Set(hall.queues.layout.record(run), b"[", -1)])
    assert hall.store.get("tick").rule == "skip"


def test_with_skip_a_run_that_was_removed_has_ended(hall: Hall) -> None:
    hall.register()
    leader = hall.leader()
    hall.pass_time(MINUTE)
    leader.step()
    hall.forget("tick-20261121T110100Z")
    hall.pass_time(MINUTE)
    leader.step()
    assert hall.runs() == ["20261121T110200Z"]


def test_with_queue_runs_are_enqueued_whatever_became_of_those_before(hall: Hall) -> None:
    hall.register(overlap="queue")
    leader = hall.leader()
    for _ in range(3):
        hall.pass_time(MINUTE)
        leader.step()
    assert hall.runs() == [f"20261121T110{minute}00Z" for minute in (1, 2, 3)]


def test_only_the_last_skipped_fire_times_are_kept(hall: Hall) -> None:
    hall.register()
    leader = hall.leader()
    for _ in range(25):
        hall.pass_time(MINUTE)
        leader.step()
    skipped = hall.store.get("tick").skipped
    assert len(skipped) == 20
    assert skipped[-1].time == "2026-11-21T11:25:00Z"


# ---------------------------------------------------------------------- catch up
def test_without_catch_up_missed_fire_times_are_skipped_and_reported(hall: Hall) -> None:
    hall.register(overlap="queue")
    hall.pass_time(30 * MINUTE + 20)
    hall.leader().step()
    assert hall.runs() == ["20261121T113000Z"]
    (missed,) = hall.store.get("tick").skipped
    assert (missed.time, missed.until) == ("2026-11-21T11:01:00Z", "2026-11-21T11:29:00Z")
    assert "catch_up is false" in missed.reason


def test_without_catch_up_nothing_runs_when_all_was_missed(hall: Hall) -> None:
    hall.store.put(python_job("pass", name="noon", schedule={"cron": "0 12 * * *"}))
    hall.pass_time(3 * HOUR)
    leader = hall.leader()
    leader.step()
    assert hall.runs() == []
    view = hall.store.get("noon")
    assert (view.last, view.handled, view.next) == (None, "2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z")
    (missed,) = view.skipped
    assert (missed.time, missed.until) == ("2026-11-21T12:00:00Z", None)
    leader.step()
    assert hall.store.get("noon") == view


def test_with_catch_up_every_missed_fire_time_has_its_run_in_order(hall: Hall) -> None:
    hall.register(overlap="queue", catch_up=True)
    hall.pass_time(5 * MINUTE)
    hall.leader().step()
    assert hall.runs() == [f"20261121T110{minute}00Z" for minute in range(1, 6)]
    tokens = [token.id for token in hall.queues.tokens(Queue.ACCEPT)]
    assert tokens == sorted(tokens)
    assert hall.store.get("tick").skipped == ()


def test_with_catch_up_a_flood_is_bounded_and_reported(hall: Hall) -> None:
    hall.register(overlap="queue", catch_up=True, every="1s")
    hall.pass_time(MAX_CATCH_UP + 50)
    hall.leader().step()
    runs = hall.runs()
    assert len(runs) == MAX_CATCH_UP
    assert runs[-1] == "20261121T110230Z"
    (missed,) = hall.store.get("tick").skipped
    assert (missed.time, missed.until) == ("2026-11-21T11:00:01Z", "2026-11-21T11:00:50Z")
    assert f"the last {MAX_CATCH_UP} missed runs are caught up" in missed.reason


def test_catching_up_does_not_overlap_either(hall: Hall) -> None:
    hall.register(catch_up=True)
    hall.pass_time(3 * MINUTE)
    hall.leader().step()
    assert hall.runs() == ["20261121T110100Z"]
    assert len(hall.store.get("tick").skipped) == 2


# ---------------------------------------------------------------------- pause and resume
def test_a_paused_schedule_enqueues_nothing_and_makes_up_for_nothing_when_it_is_resumed(hall: Hall) -> None:
    hall.register(overlap="queue", catch_up=True)
    leader = hall.leader()
    assert hall.store.pause("tick").next is None
    hall.pass_time(10 * MINUTE)
    assert leader.step() == 5
    assert hall.runs() == []
    assert hall.store.resume("tick").next == "2026-11-21T11:11:00Z"
    leader.step()
    assert hall.runs() == []
    hall.pass_time(MINUTE)
    lead_until(leader, lambda: hall.runs() == ["20261121T111100Z"], "the next run is enqueued")


def test_a_schedule_that_is_not_paused_loses_nothing_by_a_resume(hall: Hall) -> None:
    hall.register()
    hall.pass_time(MINUTE)
    hall.store.resume("tick")
    hall.leader().step()
    assert hall.runs() == ["20261121T110100Z"]


# ---------------------------------------------------------------------- trouble
def test_a_fault_of_one_schedule_does_not_stop_the_others(hall: Hall) -> None:
    for name in ("a", "b", "c"):
        hall.register(name)

    def breaking(client: Client) -> Enqueue:
        def submit(
            definition: Definition,
            plan: Plan | None,
            *,
            job_id: str,
            extra_operations: Sequence[Operation],
            origin: str,
        ) -> JobView:
            if definition.name == "b":
                raise RuntimeError(job_id)
            return client.enqueue(
                definition, plan, job_id=job_id, extra_operations=extra_operations, origin=origin
            )

        return submit

    hall.pass_time(MINUTE)
    assert hall.leader(breaking).step() == 1  # soon again, for the failed one
    assert hall.runs() == ["20261121T110100Z"] * 2
    hall.leader().step()
    assert hall.runs() == ["20261121T110100Z"] * 3


def test_a_full_pool_delays_a_run(hall: Hall) -> None:
    hall.register(overlap="queue")
    leader = hall.leader()
    hall.queues.ensure_pool()
    hall.queues.pools.change("default", bound=1)
    hall.queues.put(Queue.ACCEPT, "in-the-way", JobState.enqueued("other").to_payload())
    hall.pass_time(MINUTE)
    assert leader.step() == 1
    assert hall.runs() == ["way"]
    hall.queues.remove("in-the-way")
    fresh = hall.leader()  # it has not counted yet
    assert fresh.step() == 5
    assert hall.runs() == ["20261121T110100Z"]


def test_a_run_that_can_not_be_enqueued_any_more_is_skipped_and_reported(hall: Hall) -> None:
    script = "CREATE TABLE t USING print; INSERT INTO t SELECT 1 AS n"
    hall.store.put(Definition(name="tick", script=script, schedule=Schedule(every=60)))
    document = hall.node()
    del document["plan"]  # as an older version has registered it
    commit(hall.store.session, [Set(hall.nodes.schedule("tick"), encode(document), -1)])
    hall.pass_time(MINUTE)
    assert hall.leader().step() == 5
    (skipped,) = hall.store.get("tick").skipped
    assert skipped.time == "2026-11-21T11:01:00Z"
    assert "an older version registered it without compiling its script; register it again" in skipped.reason
    assert hall.runs() == []


def test_a_rider_that_is_refused_keeps_the_job_out(hall: Hall) -> None:
    hall.register()
    entry, _version = hall.store.read("tick") or pytest.fail("it is not there")
    with pytest.raises(Conflict):
        hall.deployment.client.submit(
            python_job("pass"), job_id="x", extra_operations=hall.store.unchanged(entry, 7)
        )
    assert not hall.queues.contains("x")


# ---------------------------------------------------------------------- the command line
def test_a_definition_with_a_schedule_is_registered_instead_of_enqueued(
    hall: Hall, typed: Type, tmp_path: Any
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text('name: nightly\npython: {text: pass}\nschedule: {cron: "0 0 1 1 *"}\n', "utf-8")
    code, out, _ = typed("job", "submit", str(file))
    name, following = out.split()
    assert (code, name) == (0, "nightly")
    assert following.endswith("-01-01T00:00:00Z")
    assert list(hall.deployment.client.jobs()) == []
    assert json.loads(typed("schedule", "show", "nightly", "-o", "json")[1])["next"] == following
    code, out, err = typed("job", "submit", str(file), "--wait")
    assert (code, out) == (2, "")
    assert "--wait is for a single run, and 'nightly' has a schedule" in err


def test_schedules_are_listed_shown_paused_resumed_and_removed_by_name(hall: Hall, typed: Type) -> None:
    hall.store.put(python_job("pass", name="nightly", schedule={"cron": "0 0 1 1 *"}))
    code, out, _ = typed("schedule", "list")
    head, _, row = out.splitlines()
    assert head.split() == ["name", "when", "next", "last", "run", "status", "fired"]
    assert "0 0 1 1 *" in row
    assert typed("schedule", "pause", "nightly")[0] == 0
    (row,) = json.loads(typed("schedule", "list", "-o", "json")[1])
    assert {key: row[key] for key in ("name", "when", "timezone", "next", "last", "paused", "overlap")} == {
        "name": "nightly",
        "when": "0 0 1 1 *",
        "timezone": "UTC",
        "next": None,
        "last": None,
        "paused": True,
        "overlap": "skip",
    }
    assert typed("schedule", "resume", "nightly")[0] == 0
    assert not hall.store.get("nightly").paused
    code, _, err = typed("schedule", "remove", "nightly")
    words = "Remove the schedule nightly? There is no terminal to ask on; confirm with --yes"
    assert (code, err) == (2, f"error: {words}\n")
    assert typed("schedule", "remove", "nightly", "--yes")[0] == 0
    assert typed("schedule", "list", "-o", "json")[1:] == ("[]\n", "")
    assert typed("schedule", "list")[2] == "there are no schedules\n"
    assert typed("schedule", "list", "-q")[2] == ""


@pytest.mark.parametrize("command", ["show", "pause", "resume"])
def test_a_name_that_is_not_there_is_an_error_of_its_own(command: str, typed: Type) -> None:
    code, out, err = typed("schedule", command, "absent")
    assert (code, out) == (4, "")
    assert "no schedule has the name 'absent'; `schedule list` shows all" in err


def test_a_misspelt_name_gets_the_one_that_was_probably_meant(hall: Hall, typed: Type) -> None:
    hall.store.put(python_job("pass", name="nightly", schedule={"cron": "0 0 1 1 *"}))
    for command in (("run",), ("show",), ("remove", "--yes")):
        code, _, err = typed("schedule", command[0], "nigtly", *command[1:])
        assert (code, err) == (4, "error: no schedule has the name 'nigtly'; did you mean 'nightly'?\n")


def test_a_registration_says_what_it_is_and_when_it_runs_first(
    hall: Hall, typed: Type, tmp_path: Path
) -> None:
    definition = tmp_path / "nightly.yaml"
    (tmp_path / "job.py").write_text("pass")
    definition.write_text("{name: nightly, python: job.py, schedule: {cron: '0 0 1 1 *'}}")
    code, out, err = typed("job", "submit", str(definition))
    assert code == 0, err
    at = from_text(out.split()[1])
    words = f"schedule nightly is registered; its next run is at {local_time(to_text(at))}\n"
    assert (out.split()[0], err) == ("nightly", words)
    assert typed("job", "submit", str(definition), "-q")[2] == ""
    hall.store.pause("nightly")
    assert "nightly is paused; " in typed("job", "submit", str(definition))[2]


def test_show_lists_fire_times_without_a_run_and_the_reason(hall: Hall, typed: Type) -> None:
    hall.now = from_text(to_text(hall.queues.clock.now_ms())) - 90 * MINUTE * 1000
    hall.register()
    hall.pass_time(30 * MINUTE)
    hall.leader().step()
    _, out, _ = typed("schedule", "show", "tick")
    assert "every 1m (UTC)" in out
    assert "catch_up is false" in out


def test_with_queue_the_run_and_the_schedule_say_that_the_last_one_has_not_ended(
    hall: Hall, typed: Type
) -> None:
    definition = python_job("pass", name="tick", schedule={"every": "1m", "overlap": "queue"}, concurrency=1)
    hall.store.put(definition)
    leader = hall.leader()
    for _ in range(2):
        hall.pass_time(MINUTE)
        leader.step()
    first, second = "tick-20261121T110100Z", "tick-20261121T110200Z"
    client = hall.deployment.client
    details = [job.submitted.detail for job_id in (first, second) if (job := client.get(job_id)).submitted]
    by = "schedule tick, registered by ip:127.0.0.1"
    assert details == [by, f"{by}; {first} had not ended (overlap: queue)"]
    shown = typed("schedule", "show", "tick")[1]
    rule = f"queue: the next run is enqueued although {second} has not ended; concurrency is 1"
    assert f"overlap:    {rule} for jobs of the name\n" in shown
    hall.store.put(python_job("pass", name="tick", schedule={"every": "1m", "overlap": "queue"}))
    assert hall.store.get("tick").rule.endswith("; no concurrency limits them")
    hall.end(second)
    assert hall.store.get("tick").rule == "queue"
