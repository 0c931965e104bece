"""Runs of a schedule that an operator asks for: one now, and those of past fire times."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.errors import DefinitionError, ScheduleNotFound, StateConflict
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import from_text, to_text
from orchestrator.schedules.runs import manual_id
from orchestrator.schedules.schedules import MAX_BACKFILL, BackfillRun, Schedules
from queues.model.errors import QueueFull
from queues.model.operations import Create, Set
from queues.store.commit import commit
from tests.jobs_support import ScriptedDeployment, python_job
from tests.schedules_support import Hall, Type, interrupted
from tests.waiting import wait_until

MINUTE, HOUR = 60, 3600
START, END = from_text("2026-11-21T10:00:00Z"), from_text("2026-11-21T10:05:00Z")
FIVE = [f"tick-20261121T100{minute}00Z" for minute in range(5)]


def ids(runs: Any) -> list[str]:
    return [run.id for run in runs]


# ---------------------------------------------------------------------- one run now
def test_a_run_now_has_its_own_id_the_time_of_now_and_its_origin(hall: Hall) -> None:
    hall.pass_time(7.5)
    script = "CREATE TABLE t USING print; INSERT INTO t SELECT '${fire_time}' AS at"
    hall.store.put(python_job("pass", name="py", schedule={"every": "1h"}))
    hall.store.put(python_job("", name="tick", script=script, schedule={"every": "1h"}, python="", file=""))
    job = hall.store.run("tick")
    assert job.id == "tick-20261121T110007Z-manual"
    assert job.submitted is not None
    assert job.submitted.detail == "schedule tick, run now"
    detail = hall.deployment.client.detail(job.id)
    assert detail.definition["labels"] == {"fire_time": "2026-11-21T11:00:07Z"}
    assert detail.definition["variables"] == {"fire_time": "2026-11-21T11:00:07Z"}
    assert "schedule" not in detail.definition
    assert hall.store.run("py").id == "py-20261121T110007Z-manual"


def test_several_runs_in_one_second_have_their_own_ids(hall: Hall) -> None:
    hall.register()
    made = {hall.store.run("tick").id for _ in range(3)}
    assert made == {f"tick-20261121T11000{second}Z-manual" for second in range(3)}


def test_a_run_now_changes_nothing_of_the_schedule_and_skips_none_of_its_fire_times(hall: Hall) -> None:
    hall.register()
    before = hall.node()
    hall.store.run("tick")
    assert hall.node() == before
    hall.pass_time(MINUTE)
    hall.leader().step()
    assert "tick-20261121T110100Z" in hall.jobs()
    hall.store.run("tick")  # although that run has not ended
    hall.store.pause("tick")
    hall.pass_time(1)
    hall.store.run("tick")
    assert len(hall.jobs()) == 4


@pytest.mark.parametrize("name", ["x", "x" * 111])
def test_the_id_of_a_run_now_is_valid_and_that_of_no_fire_time(hall: Hall, name: str) -> None:
    hall.store.put(python_job("pass", name=name, schedule={"every": "1h"}))
    assert hall.store.run(name).id == manual_id(name, hall.now)
    assert len(manual_id(name, hall.now)) <= 128
    assert manual_id(name, hall.now).endswith("-manual")


def test_the_command_prints_the_id_and_says_what_runs_beside_it(hall: Hall, typed: Type) -> None:
    hall.register()
    code, out, err = typed("schedule", "run", "tick")
    assert (code, err) == (0, "")
    assert hall.jobs() == [out.strip()]
    hall.pass_time(MINUTE)
    hall.leader().step()
    code, out, err = typed("schedule", "run", "tick", "-o", "json")
    manual = json.loads(out)
    assert manual["status"] == "ACCEPT"
    row = typed("schedule", "list")[1].splitlines()[2]
    assert f"{manual['id']}   ACCEPT" in row, "it is later than the run of the fire time"
    assert f"run now:    {manual['id']}, " in typed("schedule", "show", "tick")[1]
    (document,) = json.loads(typed("schedule", "list", "-o", "json")[1])
    assert (document["manual_run"]["id"], document["manual_run"]["status"]) == (manual["id"], "ACCEPT")
    assert "tick-20261121T110100Z has not ended: both may run at once" in err
    assert typed("schedule", "run", "absent")[0] == 4


def test_the_command_waits_for_the_end(scripted_deployment: ScriptedDeployment, monkeypatch: Any) -> None:
    from orchestrator.cli.app import run_app  # noqa: PLC0415 - the settings of the test come first

    settings = scripted_deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", settings.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", settings.root)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(settings.state_dir))
    scripted_deployment.worker()
    schedules = scripted_deployment.client.schedules
    schedules.put(python_job("pass", name="good", schedule={"cron": "0 0 1 1 *"}))
    schedules.put(python_job("fail('no')", name="bad", schedule={"cron": "0 0 1 1 *"}))
    assert run_app(["schedule", "run", "good", "--wait"]) == 0
    assert run_app(["schedule", "run", "bad", "--wait", "-q"]) == 1


# ---------------------------------------------------------------------- backfill
def test_a_backfill_enqueues_the_runs_of_past_fire_times_oldest_first(hall: Hall) -> None:
    hall.register()
    before = hall.node()
    runs = hall.store.backfill("tick", START, END)
    assert ids(runs) == FIVE
    assert all(run.enqueued for run in runs)
    assert [token.id for token in hall.queues.tokens(Queue.ACCEPT)] == FIVE
    assert hall.node() == before
    detail = hall.deployment.client.detail(FIVE[0])
    assert detail.definition["labels"] == {"fire_time": "2026-11-21T10:00:00Z"}
    assert detail.job.submitted is not None
    assert detail.job.submitted.detail == "schedule tick, backfill"


def test_a_fire_time_whose_job_exists_is_not_run_twice_and_one_whose_job_was_removed_is(hall: Hall) -> None:
    hall.register()
    hall.store.backfill("tick", START, END)
    hall.end(FIVE[0])
    hall.end(FIVE[1])
    hall.forget(FIVE[1])
    keys = {job_id: hall.queues.get(job_id).run_key for job_id in FIVE if job_id != FIVE[1]}
    planned = hall.store.backfill_runs("tick", START, END)
    assert [run.status for run in planned] == ["SUCCESS", None, "ACCEPT", "ACCEPT", "ACCEPT"]
    again = hall.store.backfill("tick", START, END)
    assert [run.enqueued for run in again] == [False, True, False, False, False]
    assert {job_id: hall.queues.get(job_id).run_key for job_id in keys} == keys


def test_the_schedule_and_a_backfill_never_run_the_same_fire_time_twice(hall: Hall) -> None:
    hall.register(catch_up=True, overlap="queue")
    hall.pass_time(3 * MINUTE)
    now = hall.now
    leader = hall.leader(interrupted(lambda _: hall.store.backfill("tick", now - 3 * MINUTE * 1000, now)))
    leader.step()
    leader.step()
    assert hall.jobs() == [f"tick-20261121T110{minute}00Z" for minute in range(4)]
    assert hall.node()["last"] == "2026-11-21T11:03:00Z"


def test_a_backfill_that_was_interrupted_continues_when_it_is_repeated(hall: Hall) -> None:
    hall.register()
    seen = list[BackfillRun]()

    def interrupt(run: BackfillRun) -> None:
        seen.append(run)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hall.store.backfill("tick", START, END, on_run=interrupt)
    assert hall.jobs() == FIVE[:2]
    runs = hall.store.backfill("tick", START, END)
    assert [run.enqueued for run in runs] == [False, False, True, True, True]


@pytest.mark.parametrize("again", [False, True])
def test_a_backfill_ends_when_its_schedule_is_removed(hall: Hall, again: bool) -> None:
    hall.register()
    seen = list[BackfillRun]()

    def remove(run: BackfillRun) -> None:
        seen.append(run)
        if len(seen) == 2:
            hall.store.remove("tick")
            if again:
                hall.register(every="1h")

    error, words = (StateConflict, "registered anew") if again else (ScheduleNotFound, "no schedule")
    with pytest.raises(error, match=words):
        hall.store.backfill("tick", START, END, on_run=remove)
    assert hall.jobs() == FIVE[:2]


def test_an_unreadable_job_is_reported_as_one_that_exists(hall: Hall) -> None:
    hall.register()
    path = hall.queues.layout.record(FIVE[0])
    hall.store.session.ensure_path(path.rpartition("/")[0])
    commit(hall.store.session, [Create(path, b"[")])
    runs = hall.store.backfill("tick", START, START + 2 * MINUTE * 1000)
    assert [(run.status, run.enqueued) for run in runs] == [("unreadable", False), ("ACCEPT", True)]


def test_times_that_cannot_be_filled_are_refused(hall: Hall) -> None:
    hall.register(every="1s")
    for start, end, words in (
        (END, START, "before they begin"),
        (START, START, "before they begin"),
        (START, hall.now + 1, "in the future"),
        (hall.now - (MAX_BACKFILL + 1) * 1000, hall.now, f"more than {MAX_BACKFILL:,} fire times"),
    ):
        with pytest.raises(DefinitionError, match=words):
            hall.store.backfill_runs("tick", start, end)
    assert len(hall.store.backfill_runs("tick", hall.now - MAX_BACKFILL * 1000, hall.now)) == MAX_BACKFILL
    with pytest.raises(ScheduleNotFound):
        hall.store.backfill("absent", START, END)
    assert hall.jobs() == []


def test_the_hours_of_a_change_of_the_clocks_are_those_of_fire_times(hall: Hall) -> None:
    zone = {"timezone": "Europe/Berlin"}
    hall.store.put(python_job("pass", name="tick", schedule={"cron": "30 2 * * *", **zone}))
    start, end = from_text("2026-10-24T00:00:00Z"), from_text("2026-10-27T00:00:00Z")
    times = [run.fire_time for run in hall.store.backfill_runs("tick", start, end)]
    assert times == ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]


def test_a_start_at_a_fire_time_includes_it_and_an_end_does_not(hall: Hall) -> None:
    hall.register()
    runs = hall.store.backfill_runs("tick", START + 1, START + 2 * MINUTE * 1000 + 1)
    assert ids(runs) == FIVE[1:3]


@pytest.mark.parametrize(("own", "limit"), [(0, 2), (5, 2), (1, 1)])
def test_the_limit_of_parallel_runs_is_in_their_definitions(hall: Hall, own: int, limit: int) -> None:
    hall.store.put(python_job("pass", name="tick", schedule={"every": "1m"}, concurrency=own))
    hall.store.backfill("tick", START, END, parallel=2)
    for job_id in FIVE:
        assert hall.deployment.client.detail(job_id).definition["concurrency"] == limit


def test_the_workers_keep_the_limit_of_a_backfill_whose_command_has_ended(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    gate = tmp_path / "go"
    client = scripted_deployment.client
    client.schedules.put(python_job(f"until({str(gate)!r})", name="tick", schedule={"every": "1h"}))
    now = client.schedules.now_ms()
    runs = client.schedules.backfill("tick", now - 5 * HOUR * 1000, now, parallel=2)
    scripted_deployment.worker(slots=8)

    def running() -> int:
        return sum(client.get(run.id).status is Status.RUNNING for run in runs)

    def waiting() -> int:
        return sum(scripted_deployment.state(run.id).waiting is not None for run in runs)

    wait_until(lambda: waiting() == len(runs) - 2, 30, "the others wait")
    assert running() == 2
    gate.touch()
    wait_until(lambda: all(client.get(run.id).status is Status.SUCCESS for run in runs), 60, "all have run")


def test_a_full_pool_stops_a_backfill_with_words_that_say_how_to_continue(hall: Hall, typed: Type) -> None:
    hall.register()
    hall.queues.ensure_pool()
    hall.queues.pools.change("default", bound=3)
    times = ("--from", "2026-11-21T10:00Z", "--to", "2026-11-21T10:05Z")
    code, out, err = typed("schedule", "backfill", "tick", *times)
    assert (code, out) == (5, "")
    assert "3 runs are enqueued, to " in err
    assert "when the pool has room, repeat the command to continue" in err
    with pytest.raises(QueueFull):
        hall.store.backfill("tick", START, END)
    hall.queues.pools.change("default", bound=100)
    wait_until(lambda: typed("schedule", "backfill", "tick", *times)[0] == 0, 10, "the bound is gone")
    assert hall.jobs() == FIVE


def test_the_command_lists_what_would_happen_and_what_happened(hall: Hall, typed: Type) -> None:
    hall.store.put(
        python_job("pass", name="tick", schedule={"cron": "0 * * * *", "timezone": "Asia/Kolkata"})
    )
    times = ("--from", "2026-11-20T10:00", "--to", "2026-11-20T12:00")  # of Kolkata
    code, out, err = typed("schedule", "backfill", "tick", *times, "--dry-run", "-o", "json")
    assert (code, err) == (0, "2 runs would be enqueued\n")
    assert json.loads(out)[0] == {
        "id": "tick-20261120T043000Z",
        "fire_time": "2026-11-20T04:30:00Z",
        "status": None,
        "action": "enqueue",
        "dry_run": True,
    }
    assert hall.jobs() == []
    code, out, err = typed("schedule", "backfill", "tick", *times)
    assert (code, err) == (0, "2 runs enqueued\n")
    assert out.count("enqueued") == 2
    code, out, err = typed("schedule", "backfill", "tick", *times)
    assert (code, err) == (0, "0 runs enqueued, 2 exist already\n")
    assert out.count("exists: ACCEPT") == 2


@pytest.mark.parametrize("time", ["yesterday", "2026-13-01", "", "9" * 9_000, "0001-01-01T00:00:00+14:00"])
def test_a_time_that_is_none_is_refused(hall: Hall, typed: Type, time: str) -> None:
    hall.register()
    code, out, err = typed("schedule", "backfill", "tick", "--from", time)
    assert (code, out) == (2, "")
    assert len(err) < 1_000
    assert "Traceback" not in err


# ---------------------------------------------------------------------- the last run
def test_list_shows_the_status_of_all_last_runs_in_few_reads(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        hall.register(f"tick{number:02}")
    hall.pass_time(MINUTE)
    hall.leader().step()
    runs = [f"tick{number:02}-20261121T110100Z" for number in range(20)]
    hall.end(runs[0])
    hall.forget(runs[1])
    commit(hall.store.session, [Set(hall.queues.layout.record(runs[2]), b"[", -1)])
    commit(hall.store.session, [Set(hall.nodes.schedule("tick03"), b"[", -1)])
    reads, get_many = list[int](), type(hall.store.session).get_many

    def counting(self: Any, paths: Any) -> Any:
        reads.append(len(paths))
        return get_many(self, paths)

    monkeypatch.setattr(type(hall.store.session), "get_many", counting)
    views = hall.store.list()
    assert len(reads) <= 4
    assert [view.last_status for view in views] == ["SUCCESS", "removed", "unreadable", None] + [
        "ACCEPT"
    ] * 16
    assert [view.running for view in views][:5] == [False, False, False, False, True]
    assert views[3].error is not None


def test_the_list_on_the_command_line_has_id_status_and_age_of_the_last_run(hall: Hall, typed: Type) -> None:
    hall.now = hall.queues.clock.now_ms() // 60_000 * 60_000 - 180_000
    hall.register()
    hall.pass_time(MINUTE)
    hall.leader().step()
    _, out, _ = typed("schedule", "list")
    row = out.splitlines()[2]
    run = f"tick-{to_text(hall.now).replace('-', '').replace(':', '')}"
    assert f"{run}   ACCEPT" in row
    assert row.rstrip().endswith(" min ago")
    (document,) = json.loads(typed("schedule", "list", "-o", "json")[1])
    assert (document["last_run"], document["last_status"], document["running"]) == (run, "ACCEPT", True)
    assert f"last run:   {run}, " in typed("schedule", "show", "tick")[1]


def test_the_library_has_the_same(hall: Hall) -> None:
    schedules = hall.deployment.client.schedules
    assert isinstance(schedules, Schedules)
    schedules.put(python_job("pass", name="tick", schedule={"every": "1h"}))
    assert schedules.run("tick").status is Status.ACCEPT
    now = schedules.now_ms()
    assert len(schedules.backfill("tick", now - 3 * HOUR * 1000, now)) == 3
