"""Schedules that follow jobs: a run once all of them have succeeded since the last one, exactly once."""

import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest

from orchestrator.client.client import Client
from orchestrator.history.successes import KnownSuccesses, Success, Successes
from orchestrator.leader.election import Election
from orchestrator.leader.old_successes import OldSuccesses
from orchestrator.model.errors import DefinitionError
from orchestrator.model.job import JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from orchestrator.schedules.planner import Planner
from orchestrator.schedules.runs import Enqueue
from orchestrator.schedules.schedules import Schedules
from orchestrator.schedules.store import ScheduleStore
from queues.model.operations import Create, Delete, Operation, Set
from queues.session import Session
from queues.store.commit import commit
from tests.jobs_support import ScriptedDeployment, python_job
from tests.queues_support import expire
from tests.schedules_support import Died, Hall, Type, dies_after_put, interrupted
from tests.waiting import wait_until

FAR = 3600.0


def follow(hall: Hall, *after: str, name: str = "report", **schedule: Any) -> None:
    hall.store.put(python_job("pass", name=name, schedule={"after": list(after), **schedule}))


def succeed(hall: Hall, name: str) -> str:
    """A job of this name reaches finish as SUCCESS, by an operator; returns its id."""
    job_id = f"{name}-{len(hall.jobs())}"
    state = JobState.enqueued(name).evolve(status=Status.SUCCESS, attempt=1)
    hall.queues.ensure_pool()
    hall.queues.put(Queue.SUCCESS, job_id, state.to_payload())
    hall.deployment.client.move(job_id, Queue.FINISH)
    return job_id


def reports(hall: Hall) -> list[str]:
    return [job_id for job_id in hall.jobs() if job_id.startswith("report-")]


# ---------------------------------------------------------------------- the rule
def test_a_run_is_enqueued_each_time_that_all_have_succeeded_since_the_last_one(hall: Hall) -> None:
    follow(hall, "load", "clean", overlap="queue")
    leader = hall.leader()
    load = succeed(hall, "load")
    assert leader.step() <= 1, "a success is noticed within a second"
    assert reports(hall) == []
    clean = succeed(hall, "clean")
    leader.step()
    (first,) = reports(hall)
    job = hall.deployment.client.get(first)
    assert job.submitted is not None
    assert job.submitted.detail == f"schedule report, registered by ip:127.0.0.1, after {load}, {clean}"
    for name in ("load", "load", "load"):
        succeed(hall, name)
        leader.step()
    assert reports(hall) == [first]
    succeed(hall, "clean")
    leader.step()
    leader.step()
    assert len(reports(hall)) == 2


def test_a_success_before_the_registration_does_not_count(hall: Hall) -> None:
    follow(hall, "load", name="other")
    succeed(hall, "load")
    follow(hall, "load")
    hall.leader().step()
    assert [job_id for job_id in hall.jobs() if not job_id.startswith("load")] == ["other-20261121T110000Z"]
    succeed(hall, "load")
    hall.leader().step()
    assert len(reports(hall)) == 1


def test_a_definition_that_is_registered_again_keeps_what_has_succeeded_unless_its_names_change(
    hall: Hall,
) -> None:
    follow(hall, "load", "clean")
    succeed(hall, "load")
    follow(hall, "clean", "load")
    assert [each.counts for each in hall.store.get("report").waits_for] == [False, True]
    follow(hall, "load")
    assert [each.counts for each in hall.store.get("report").waits_for] == [False]


def test_a_failed_job_and_its_retry_count_as_one_success(hall: Hall) -> None:
    follow(hall, "load", overlap="queue")
    leader = hall.leader()
    state = JobState.enqueued("load").evolve(status=Status.ERROR_FAIL, attempt=1)
    hall.queues.ensure_pool()
    hall.queues.put(Queue.FAIL, "load", state.to_payload())
    hall.deployment.client.move("load", Queue.FINISH)
    leader.step()
    assert reports(hall) == []
    hall.deployment.client.retry("load")
    hall.queues.move(
        "load", Queue.SUCCESS, payload=state.evolve(status=Status.SUCCESS, attempt=2).to_payload()
    )
    hall.deployment.client.move("load", Queue.FINISH)
    leader.step()
    leader.step()
    assert len(reports(hall)) == 1


# ---------------------------------------------------------------------- overlap, pause
def test_with_skip_the_run_waits_until_the_last_one_has_ended_and_follows_all_successes_until_then(
    hall: Hall,
) -> None:
    follow(hall, "load")
    leader = hall.leader()
    succeed(hall, "load")
    leader.step()
    (first,) = reports(hall)
    for _ in range(3):
        succeed(hall, "load")
        leader.step()
    assert reports(hall) == [first]
    assert hall.store.get("report").rule == f"skip: the next run waits until {first} has ended"
    hall.end(first)
    leader.step()
    leader.step()
    assert len(reports(hall)) == 2
    assert hall.store.get("report").skipped == ()


def test_successes_during_a_pause_cause_no_run(hall: Hall) -> None:
    follow(hall, "load")
    leader = hall.leader()
    hall.store.pause("report")
    succeed(hall, "load")
    leader.step()
    hall.store.resume("report")
    wait_until(lambda: not _paused(leader, "report"), 10, "the leader sees the end of the pause")
    assert reports(hall) == []
    succeed(hall, "load")
    leader.step()
    assert len(reports(hall)) == 1


def _paused(leader: Planner, name: str) -> bool:
    leader.step()
    return any(known.record.paused for known in leader._known if known.name == name)  # noqa: SLF001 - its copy


def test_a_schedule_that_is_paused_between_decision_and_put_does_not_run(hall: Hall) -> None:
    follow(hall, "load")
    succeed(hall, "load")
    hall.leader(interrupted(lambda _: hall.store.pause("report"))).step()
    hall.leader().step()
    hall.store.resume("report")
    hall.leader().step()
    assert reports(hall) == []


# ---------------------------------------------------------------------- exactly once
def test_a_leader_that_dies_between_put_and_record_causes_no_second_run(hall: Hall) -> None:
    follow(hall, "load", "clean", overlap="queue")
    succeed(hall, "load")
    succeed(hall, "clean")
    with pytest.raises(Died):
        hall.leader(dies_after_put).step()
    (run,) = reports(hall)
    assert hall.node("report")["last"] is None
    succeed(hall, "load")  # a later leader must not take it for the success of this run
    hall.pass_time(FAR)
    leader = hall.leader()
    leader.step()
    assert hall.node("report")["last"] is not None
    assert reports(hall) == [run]
    succeed(hall, "clean")
    leader.step()
    assert len(reports(hall)) == 2


def test_a_leader_that_dies_after_its_decision_leaves_the_run_to_the_next_one(hall: Hall) -> None:
    def dies_before_put(_client: Client) -> Enqueue:
        def submit(*_: object, **__: object) -> NoReturn:
            raise Died

        return submit

    follow(hall, "load")
    succeed(hall, "load")
    with pytest.raises(Died):
        hall.leader(dies_before_put).step()
    decided = hall.store.get("report").armed_run
    assert decided is not None
    assert hall.store.get("report").next is None
    hall.leader().step()
    assert reports(hall) == [decided]


def test_leaders_that_act_at_once_enqueue_one_run_for_each_set_of_successes(hall: Hall) -> None:
    follow(hall, "load", overlap="queue")
    leaders = [hall.leader() for _ in range(3)]
    for number in range(1, 6):
        succeed(hall, "load")
        threads = [threading.Thread(target=leader.step) for leader in leaders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for leader in leaders:
            leader.step()
        assert len(reports(hall)) == number


def test_a_leader_that_was_replaced_decides_and_enqueues_nothing(hall: Hall) -> None:
    def elected() -> tuple[Operation, ...]:
        session = hall.deployment.session()
        if session.exists(hall.nodes.leader) is not None:
            commit(session, [Delete(hall.nodes.leader)])
        election = Election(session, hall.nodes, "leader")
        assert election.look(lambda: None)
        return election.fence()

    follow(hall, "load")
    late = hall.leader(fence=elected())
    later = hall.leader(interrupted(lambda _: elected()), fence=elected())
    succeed(hall, "load")
    late.step()
    assert hall.store.get("report").armed_run is None
    later.step()
    assert reports(hall) == []
    hall.leader(fence=elected()).step()
    assert len(reports(hall)) == 1


def test_a_schedule_that_is_registered_anew_does_not_follow_what_the_old_one_did(hall: Hall) -> None:
    def register_anew(_: str) -> None:
        hall.store.remove("report")
        follow(hall, "load")

    follow(hall, "load")
    succeed(hall, "load")
    hall.leader(interrupted(register_anew)).step()
    hall.leader().step()
    assert reports(hall) == []
    assert hall.store.get("report").waits_for[0].counts is False


def test_a_read_from_a_server_that_is_behind_causes_no_run(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(hall, "load", overlap="queue")
    succeed(hall, "load")
    old = hall.store.successes.read(["load"])
    succeed(hall, "load")
    hall.leader().step()
    (first,) = reports(hall)
    leader = hall.leader()
    with monkeypatch.context() as patch:
        patch.setattr(Successes, "read", lambda _self, _names: old)
        leader.step()
    leader.step()
    assert reports(hall) == [first]


def test_changes_are_seen_after_the_session_of_the_leader_was_lost(hall: Hall) -> None:
    client = hall.client()
    store = Schedules(hall.deployment.session(), hall.nodes, hall.clock, client.enqueue)
    leader = Planner(store, submit=client.enqueue, get=client.get, fence=tuple)
    follow(hall, "load")
    leader.step()
    expire(store.session)
    succeed(hall, "load")
    leader.step()
    assert len(reports(hall)) == 1


# ---------------------------------------------------------------------- the successes
def test_workers_report_the_successes_of_awaited_names_alone_however_short_the_retention(
    scripted_deployment: ScriptedDeployment,
) -> None:
    nodes = Nodes(scripted_deployment.settings.root)
    scripted_deployment.worker(retention=0)
    schedules = scripted_deployment.client.schedules
    schedules.put(python_job("pass", name="report", schedule={"after": ["load"]}))
    session = scripted_deployment.session()
    for name in ("load", "other"):
        scripted_deployment.submit("pass", name=name)

    def has_run() -> bool:
        return schedules.get("report").last is not None

    wait_until(has_run, 60, "the report runs")
    assert session.children(nodes.successes) == ["load"]
    found = session.get(nodes.success("load"))
    assert found is not None
    assert found[1].version == 1, "it was written once"


def test_a_job_of_a_name_for_which_no_schedule_waits_costs_no_request(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(hall, "load")
    record = hall.queues.get(succeed(hall, "other"))
    known = KnownSuccesses(hall.queues.session, hall.nodes)
    assert known.operations("other", record, 1, hall.now) == ()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a request")

    for name in ("get", "exists", "listing", "children", "get_many", "ensure_path"):
        monkeypatch.setattr(Session, name, refuse)
    for _ in range(3):
        assert known.operations("other", record, 1, hall.now) == ()
    (operation,) = known.operations("load", record, 1, hall.now)
    assert operation.path == hall.nodes.success("load")


@pytest.mark.parametrize("loss", [True, False])
def test_a_worker_knows_a_new_registration_also_after_a_lost_session(hall: Hall, loss: bool) -> None:
    session = hall.deployment.session()
    known = KnownSuccesses(session, hall.nodes)
    record = hall.queues.get(succeed(hall, "other"))
    assert known.operations("load", record, 1, hall.now) == ()
    if loss:
        expire(session)
    follow(hall, "load")
    wait_until(lambda: known.operations("load", record, 1, hall.now), 10, "the worker knows the name")
    hall.store.remove("report")
    commit(session, [Delete(hall.nodes.success("load")), Delete(hall.nodes.successes)])
    wait_until(lambda: not known.operations("load", record, 1, hall.now), 10, "the worker forgets the name")
    follow(hall, "load")
    wait_until(lambda: known.operations("load", record, 1, hall.now), 10, "also in a folder made anew")


def test_a_success_between_read_and_registration_is_not_overwritten(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(hall, "load", name="other")
    await_names, calls = Successes.await_names, list[str]()

    def meanwhile(self: Successes, names: Sequence[str]) -> Any:
        found = await_names(self, names)
        if not calls:
            calls.append(succeed(hall, "load"))
        return found

    monkeypatch.setattr(Successes, "await_names", meanwhile)
    follow(hall, "load")
    (awaited,) = hall.store.get("report").waits_for
    assert (awaited.job, awaited.counts) == (calls[0], False)
    assert [each.counts for each in hall.store.get("other").waits_for] == [True]


def test_a_damaged_node_is_shown_and_the_next_success_repairs_it(hall: Hall, typed: Type) -> None:
    follow(hall, "load")
    commit(hall.store.session, [Set(hall.nodes.success("load"), b'{"job": 1, "at": "soon"}', -1)])
    leader = hall.leader()
    leader.step()
    assert reports(hall) == []
    assert "cannot be read" in typed("schedule", "show", "report")[1]
    succeed(hall, "load")
    leader.step()
    assert len(reports(hall)) == 1


def test_a_missing_node_is_made_again_by_the_leader(hall: Hall) -> None:
    follow(hall, "load")
    commit(hall.store.session, [Delete(hall.nodes.success("load"))])
    leader = hall.leader()
    leader.step()
    succeed(hall, "load")
    leader.step()
    assert len(reports(hall)) == 1


def cleaner(hall: Hall) -> OldSuccesses:
    client = hall.client()
    return OldSuccesses(hall.queues, hall.nodes, client.schedules, tuple)


def test_the_leader_removes_the_success_of_a_name_for_which_no_schedule_waits(hall: Hall) -> None:
    assert cleaner(hall).step() > 0
    follow(hall, "load", "clean")
    follow(hall, "clean", name="other")
    succeed(hall, "load")
    hall.store.remove("report")
    cleaner(hall).step()
    assert hall.store.session.children(hall.nodes.successes) == ["clean"]


def test_nothing_is_removed_while_a_schedule_cannot_be_read(hall: Hall) -> None:
    follow(hall, "load")
    hall.store.remove("report")
    commit(hall.store.session, [Create(hall.nodes.schedule("broken"), b"{")])
    cleaner(hall).step()
    assert hall.store.session.children(hall.nodes.successes) == ["load"]


def test_a_name_for_which_a_schedule_begins_to_wait_at_the_same_moment_is_not_removed(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(hall, "load")
    hall.store.remove("report")
    records = ScheduleStore.records

    def late(self: ScheduleStore) -> Any:
        found = records(self)
        follow(hall, "load")
        return found

    late_cleaner = cleaner(hall)
    monkeypatch.setattr(late_cleaner._store, "records", lambda: late(late_cleaner._store))  # noqa: SLF001 - one read
    late_cleaner.step()
    assert hall.store.session.children(hall.nodes.successes) == ["load"]


# ---------------------------------------------------------------------- circles
def test_schedules_that_would_wait_for_each_other_are_refused(hall: Hall) -> None:
    follow(hall, "b", name="a")
    follow(hall, "c", name="b")
    with pytest.raises(DefinitionError, match="'c' leads back to itself: c after a after b after c"):
        follow(hall, "a", name="c")
    follow(hall, "other", name="c")


# ---------------------------------------------------------------------- the command line
def test_show_and_list_say_for_what_a_schedule_waits(hall: Hall, typed: Type, tmp_path: Any) -> None:
    file = tmp_path / "report.yaml"
    file.write_text("name: report\npython: {text: pass}\nschedule: {after: [load, clean]}\n", "utf-8")
    assert typed("job", "submit", str(file))[:2] == (0, "report after load, clean\n")
    assert "after load, clean" in typed("schedule", "list")[1]
    succeed(hall, "load")
    _, out, _ = typed("schedule", "show", "report")
    assert "next:       once clean has succeeded" in out
    rows = [line.split() for line in out.splitlines() if line.split()[:1] in (["load"], ["clean"])]
    assert rows[0][-1] == "yes"
    assert " ".join(rows[1]) == "clean none since it was registered no"
    assert typed("schedule", "pause", "report")[0] == 0
    assert "paused" in typed("schedule", "list")[1]
    assert "report runs after load, clean" in typed("schedule", "resume", "report")[2]
    code, _, err = typed("schedule", "backfill", "report", "--from", "2026-11-01")
    assert code == 2
    assert "'report' follows other jobs and has no fire times" in err


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"])
def test_a_success_at_any_time_stops_no_other_schedule(hall: Hall, at: str) -> None:
    follow(hall, "load")
    hall.register()
    data = Success.model_construct(job="x", run="x-1", at=at).encode()
    commit(hall.store.session, [Set(hall.nodes.success("load"), data, -1)])
    hall.pass_time(60)
    leader = hall.leader()
    leader.step()
    assert "tick-20261121T110100Z" in hall.jobs()
    hall.store.list()
    succeed(hall, "load")
    leader.step()
    assert len(reports(hall)) >= 1
