from datetime import datetime
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import compile_program
from orchestrator.model.schedule import Schedule
from orchestrator.model.times import from_text, to_text
from orchestrator.schedules.runs import (
    GRACE_MS,
    MAX_CATCH_UP,
    Due,
    compile_registration,
    due,
    fires,
    latest_fires,
    next_fire,
    run_definition,
    run_id,
)

BERLIN = "Europe/Berlin"
SCRIPT = {"name": "nightly", "script": "CREATE TABLE t USING print; INSERT INTO t SELECT 1"}
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


def scheduled(**schedule: Any) -> Definition:
    return build_definition({**SCRIPT, "schedule": schedule}, "job.yaml")


def times(schedule: Schedule, after: str, count: int) -> list[str]:
    return [to_text(fire) for fire in islice(fires(schedule, from_text(after)), count)]


# ---------------------------------------------------------------------- summer time
def test_a_time_that_the_clocks_skip_in_spring_comes_right_after_the_gap() -> None:
    schedule = Schedule(cron="30 2 * * *", timezone=BERLIN)
    assert times(schedule, "2026-03-28T00:00:00Z", 3) == [
        "2026-03-28T01:30:00Z",
        "2026-03-29T01:00:00Z",  # 03:00 by the new time: 02:30 was not
        "2026-03-30T00:30:00Z",
    ]


def test_a_time_that_comes_twice_in_autumn_is_taken_once() -> None:
    schedule = Schedule(cron="30 2 * * *", timezone=BERLIN)
    assert times(schedule, "2026-10-24T12:00:00Z", 2) == ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]


def test_a_start_in_the_second_of_two_hours_does_not_yield_the_time_of_the_first_one() -> None:
    schedule = Schedule(cron="30 2 * * *", timezone=BERLIN)
    # 02:15 for the second time: 02:30 of the first time is 45 minutes ago
    assert times(schedule, "2026-10-25T01:15:00Z", 1) == ["2026-10-26T01:30:00Z"]


def test_a_schedule_within_the_hour_follows_real_time_through_both_changes() -> None:
    schedule = Schedule(cron="*/30 * * * *", timezone=BERLIN)
    for start in ("2026-03-28T22:00:00Z", "2026-10-24T22:00:00Z"):
        found = [from_text(text) for text in times(schedule, start, 12)]
        assert {later - earlier for earlier, later in pairwise(found)} == {30 * MINUTE_MS}


def test_a_daily_time_stays_at_its_local_hour() -> None:
    schedule = Schedule(cron="0 6 * * *", timezone=BERLIN)
    assert times(schedule, "2026-03-27T12:00:00Z", 3) == [
        "2026-03-28T05:00:00Z",
        "2026-03-29T04:00:00Z",
        "2026-03-30T04:00:00Z",
    ]


_NUMBERS = st.sampled_from(["*", "*/7", "0", "2", "1-3", "0,2"])


@given(
    cron=st.builds(lambda minute, hour: f"{minute} {hour} * * *", _NUMBERS, _NUMBERS),
    zone=st.sampled_from(
        [BERLIN, "America/New_York", "Africa/Cairo", "America/Havana", "Asia/Kolkata", "UTC"]
    ),
    change=st.sampled_from(
        ["2026-03-07", "2026-03-28", "2026-04-23", "2026-10-24", "2026-10-29", "2026-11-01"]
    ),
    later=st.integers(0, 40 * HOUR_MS),
)
def test_fire_times_are_the_same_wherever_one_begins_to_count(
    cron: str, zone: str, change: str, later: int
) -> None:
    schedule, start = Schedule(cron=cron, timezone=zone), from_text(f"{change}T00:00:00Z")
    found = list(takewhile(lambda fire: fire <= start + 45 * HOUR_MS, fires(schedule, start)))
    assert found == sorted(set(found))
    rest = [fire for fire in found if fire > start + later][:3]
    assert list(islice(fires(schedule, start + later), len(rest))) == rest


# ---------------------------------------------------------------------- every
def test_every_counts_from_1970_whoever_asks_and_whenever() -> None:
    schedule = Schedule(every=7 * 60)
    for after in (0, 1, 7 * MINUTE_MS - 1):
        assert next_fire(schedule, after) == 7 * MINUTE_MS
    assert next_fire(schedule, 7 * MINUTE_MS) == 14 * MINUTE_MS


def test_a_day_begins_at_midnight_in_utc() -> None:
    assert times(Schedule(every=86_400), "2026-11-21T11:00:00Z", 1) == ["2026-11-22T00:00:00Z"]


# ---------------------------------------------------------------------- the last ones
@pytest.mark.parametrize(
    "schedule",
    [Schedule(every=1), Schedule(every=5400), Schedule(cron="*/7 * * * *"), Schedule(cron="0 6 1 * *")],
)
def test_the_latest_fire_times_are_the_end_of_all(schedule: Schedule) -> None:
    start = from_text("2026-01-01T00:00:01Z")
    until = start + 40 * DAY_MS if schedule.every != 1 else start + HOUR_MS
    everything = list(takewhile(lambda fire: fire <= until, fires(schedule, start)))
    for limit in (1, 100):
        assert latest_fires(schedule, start, until, limit) == everything[-limit:]


def test_a_year_of_minutes_is_not_counted_through(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [0]

    class Counting(datetime):
        def timestamp(self) -> float:
            asked[0] += 1
            return super().timestamp()

    schedule, now = Schedule(cron="* * * * *"), from_text("2026-11-21T11:00:00Z")
    monkeypatch.setattr("orchestrator.schedules.runs.datetime", Counting)
    assert len(latest_fires(schedule, now - 365 * DAY_MS, now, MAX_CATCH_UP)) == MAX_CATCH_UP
    assert 0 < asked[0] < 2_000


# ---------------------------------------------------------------------- due runs
NOON = from_text("2026-11-21T12:00:00Z")
HOURLY = Schedule(cron="0 * * * *")


def test_nothing_is_due_before_the_next_fire_time() -> None:
    assert due(HOURLY, NOON, NOON + HOUR_MS - 1) == Due()
    assert due(HOURLY, NOON, NOON + HOUR_MS) == Due((NOON + HOUR_MS,))


def test_a_fire_time_late_by_less_than_the_grace_is_not_missed() -> None:
    fire = NOON + HOUR_MS
    assert due(HOURLY, NOON, fire + GRACE_MS) == Due((fire,))
    assert due(HOURLY, NOON, fire + GRACE_MS + 1) == Due((), (fire, fire))


def test_without_catch_up_the_last_fire_time_is_taken_if_it_is_recent_and_the_others_are_missed() -> None:
    assert due(HOURLY, NOON, NOON + 5 * HOUR_MS) == Due(
        (NOON + 5 * HOUR_MS,), (NOON + HOUR_MS, NOON + 4 * HOUR_MS)
    )


def test_with_catch_up_all_are_taken_in_order() -> None:
    schedule = HOURLY.model_copy(update={"catch_up": True})
    todo = due(schedule, NOON, NOON + 5 * HOUR_MS + 1)
    assert todo == Due(tuple(NOON + hour * HOUR_MS for hour in range(1, 6)))


def test_with_catch_up_a_flood_is_cut_to_its_end() -> None:
    schedule = Schedule(every=60, catch_up=True)
    todo = due(schedule, NOON, NOON + 10 * HOUR_MS)
    assert len(todo.times) == MAX_CATCH_UP
    assert todo.times[-1] == NOON + 10 * HOUR_MS
    assert todo.missed == (NOON + MINUTE_MS, todo.times[0] - MINUTE_MS)


# ---------------------------------------------------------------------- input of users
@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (
            {"cron": "61 * * * *"},
            "field 'schedule.cron': '61 * * * *' is not a cron expression: bad minute; write",
        ),
        ({"cron": "0 6 * *"}, "it has 4 fields; write five fields: minute, hour"),
        ({"cron": "@daily"}, "it has 1 field; "),
        ({"cron": "0 0 6 * * *"}, "it has 6 fields; "),
        ({"cron": f"{'9' * 5000} * * * *"}, "is not a cron expression"),
        ({"cron": "0 6 30 2 *"}, "is not a cron expression: bad day-of-month"),
        ({"cron": "0 6 * * 1-5", "every": "1h"}, "give exactly one of 'cron', 'every' and 'after'"),
        (
            {"every": "0.5s"},
            "field 'schedule.every': 0.5 s is not a period: give whole seconds, from 1s to 366d",
        ),
        ({"every": "1500ms"}, "1.5 s is not a period"),
        ({"every": "367d"}, "from 1s to 366d"),
        ({"every": -1}, "-1 s is not a period"),
        ({"every": float("nan")}, "nan s is not a duration"),
        ({"every": float("inf")}, "inf s is not a duration"),
        ({"every": "often"}, "'often' is not a duration"),
        ({"cron": "0 6 * * *", "timezone": "Europe/Berln"}, "did you mean 'Europe/Berlin'?"),
        ({"cron": "0 6 * * *", "timezone": "Europe"}, "'Europe' is not a time zone"),
        ({"cron": "0 6 * * *", "timezone": "../../etc/passwd"}, "is not a time zone"),
        ({"cron": "0 6 * * *", "timezone": ""}, "'' is not a time zone"),
        ({"cron": "0 6 * * *", "timezone": "localtime"}, "may differ between hosts"),
        ({"every": "1d", "timezone": BERLIN}, "'timezone' applies to 'cron'"),
        ({"timezone": BERLIN}, "the schedule has no rule: give 'cron', 'every' or 'after'"),
        ({"after": ["a"], "cron": "0 6 * * *"}, "give exactly one of 'cron', 'every' and 'after'"),
        ({"after": ["a", "b", "a"]}, "field 'schedule.after': it names 'a' more than once"),
        ({"after": ["../jobs"]}, "field 'schedule.after': '../jobs' is not the name of a job"),
        ({"after": "x" * 5_000}, "is not the name of a job"),
        ({"after": [f"n{number}" for number in range(51)]}, "it has 51 names, the limit is 50"),
        ({"after": [7]}, "field 'schedule.after.0'"),
        ({"after": ["nightly"]}, "'schedule.after' names 'nightly' itself"),
        ({"after": ["a"], "catch_up": True}, "'catch_up' is for fire times, and 'after' has none"),
        ({"after": ["a"], "timezone": BERLIN}, "'timezone' is for fire times, and 'after' has none"),
        ({"cron": "0 6 * * *", "overlap": "kill"}, "field 'schedule.overlap'"),
        (
            {"cron": "0 6 * * *", "catchup": True},
            "unknown field 'schedule.catchup'; did you mean 'catch_up'?",
        ),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_in_a_sentence(schedule: dict[str, object], words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        scheduled(**schedule)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_schedule_may_be_written_out_with_nothing_in_it() -> None:
    definition = scheduled(cron="", every="", timezone="UTC", overlap="skip", catch_up=False)
    assert not definition.schedule.is_set
    assert "schedule" not in definition.model_dump(exclude_defaults=True)


@pytest.mark.parametrize(
    ("schedule", "when"),
    [
        ({"cron": "  0  6 * *  mon-fri "}, "0 6 * * mon-fri"),
        ({"every": "90s"}, "every 90s"),
        ({"every": "3600s"}, "every 1h"),
        ({"every": "2d"}, "every 2d"),
        ({"every": 600}, "every 10m"),
        ({"after": ["load", "clean"]}, "after load, clean"),
        ({"after": "load"}, "after load"),
    ],
)
def test_the_rule_is_shown_in_one_line(schedule: dict[str, object], when: str) -> None:
    assert scheduled(**schedule).schedule.when == when


# ---------------------------------------------------------------------- a run
def test_the_id_of_a_run_is_made_of_the_fire_time() -> None:
    assert run_id("nightly", from_text("2026-11-21T11:00:00Z")) == "nightly-20261121T110000Z"


def test_a_run_has_the_definition_without_the_schedule_and_its_fire_time() -> None:
    definition = scheduled(cron="0 6 * * *")
    run = run_definition(definition.model_copy(update={"labels": {"team": "a"}}), NOON)
    assert not run.schedule.is_set
    assert (run.name, run.script) == (definition.name, definition.script)
    assert run.labels == {"team": "a", "fire_time": "2026-11-21T12:00:00Z"}
    assert run.variables == {"fire_time": "2026-11-21T12:00:00Z"}
    assert run == build_definition(run.model_dump(mode="json"), "again")


def test_a_variable_of_the_script_goes_before_the_fire_time() -> None:
    definition = build_definition({**SCRIPT, "variables": {"fire_time": "mine"}}, "job.yaml")
    assert run_definition(definition, NOON).variables == {"fire_time": "mine"}


def test_a_python_program_has_the_fire_time_in_its_labels_alone() -> None:
    definition = build_definition({"name": "x", "python": "pass", "schedule": {"every": "1h"}}, "job.yaml")
    run = run_definition(definition, NOON)
    assert (run.variables, run.labels) == ({}, {"fire_time": "2026-11-21T12:00:00Z"})
    compile_program(run)


def test_a_script_may_use_the_fire_time() -> None:
    script = "CREATE TABLE t USING print; INSERT INTO t SELECT '${fire_time}' AS at"
    compile_registration(
        build_definition({"name": "x", "script": script, "schedule": {"every": "1h"}}, "job.yaml")
    )


def test_a_name_whose_runs_would_have_no_valid_ids_is_refused() -> None:
    longest = {**SCRIPT, "name": "x" * 111, "schedule": {"every": "1h"}}
    compile_registration(build_definition(longest, "job.yaml"))
    with pytest.raises(DefinitionError, match="has 112 characters, but with a schedule 111 are allowed"):
        compile_registration(build_definition({**longest, "name": "x" * 112}, "job.yaml"))


def test_a_definition_without_a_schedule_is_not_registered() -> None:
    with pytest.raises(DefinitionError, match="'nightly' has no schedule"):
        compile_registration(build_definition(SCRIPT, "job.yaml"))


def test_times_are_written_and_read_to_the_millisecond() -> None:
    for at in (NOON, NOON + 1, NOON + 999):
        assert from_text(to_text(at)) == at
    assert to_text(NOON + 1) == "2026-11-21T12:00:00.001Z"
    assert datetime.fromisoformat(to_text(NOON)).astimezone(ZoneInfo(BERLIN)).hour == 13
