"""The limit of one query: who decides it, when it changes, and what it shows."""

from typing import Any

from spark_runner.push.adjustment import Adjustment
from spark_runner.sql.batch_limits.limit_law import Batch, Target
from spark_runner.sql.batch_limits.tuner import LimitTuner, Tuning, remembered

TARGET = Target(10.0, 10, 1000)
MUCH = 10**6


def tuner(*, is_on: bool = True, begin: int = 100, kept: int | None = None, **changed: Any) -> LimitTuner:
    now = changed.pop("now", [0.0])
    return LimitTuner(Tuning(is_on, TARGET), begin, kept, Adjustment(**changed), lambda: now[0])


def test_the_target_is_the_time_between_triggers_but_not_less_than_5_seconds() -> None:
    assert Tuning.of({"trigger_ms": 30_000}) == Tuning(False, Target(30.0, 10, 10_000_000))
    assert Tuning.of({"trigger_ms": 200, "batch_tuning": {}}).target.seconds == 5.0
    given = {"target_ms": 500, "least": 7, "most": 9}
    assert Tuning.of({"trigger_ms": 200, "batch_tuning": given}) == Tuning(True, Target(0.5, 7, 9))
    assert Tuning.of({"trigger_ms": 200, "batch_tuning": {"most": 3}}).target.least == 3
    assert Tuning.of({"trigger_ms": 200, "batch_tuning": {"least": 10**8}}).target.most == 10**8


def test_without_tuning_the_table_decides_and_nothing_is_shown() -> None:
    plain = tuner(is_on=False, begin=5000, kept=70)
    plain.measured(0, 5000, 100.0, MUCH)
    assert (plain.limit, plain.wanted(), plain.shown()) == (5000, None, {})


def test_a_query_begins_with_the_pin_else_with_what_an_earlier_attempt_has_found() -> None:
    assert tuner(batch_rows=5).limit == 5, "an operator may leave the bounds of the script"
    assert tuner(kept=70).limit == 70
    assert tuner(kept=7000).limit == 1000
    assert tuner(begin=7000).limit == 1000
    assert tuner(is_on=False, is_tuned=True, kept=70).limit == 70


def test_each_batch_is_judged_once_and_batches_from_before_a_change_change_nothing() -> None:
    own = tuner()
    assert own.wanted() is None
    own.measured(0, 100, 40.0, MUCH)
    assert own.wanted() == 50
    own.change(50, 2)
    assert own.wanted() is None
    own.measured(1, 100, 40.0, MUCH)  # its report came late
    assert own.wanted() is None
    own.measured(2, 50, 20.0, MUCH)
    assert own.wanted() == 25


def test_a_limit_rises_again_only_after_ten_pauses() -> None:
    now = [0.0]
    own = tuner(now=now)
    own.measured(0, 100, 1.0, MUCH)
    assert own.wanted() == 200
    own.change(200, 1)
    now[0] = 3.0
    own.resumed()
    now[0] = 10.0
    own.resumed()  # of a further micro-batch
    own.measured(1, 200, 2.0, MUCH)
    assert own.wanted() is None
    assert "rises again in 20 s" in own.shown()["reason"]
    now[0] = 31.0
    own.measured(2, 200, 2.0, MUCH)
    assert own.wanted() == 400


def test_a_pause_in_which_no_broker_answered_holds_the_limit_for_ten_minutes_at_most() -> None:
    now = [0.0]
    own = tuner(now=now)
    own.measured(0, 100, 40.0, MUCH)
    assert own.wanted() == 50
    own.change(50, 1)
    now[0] = 7200.0
    own.resumed()
    own.measured(1, 50, 1.0, MUCH)
    assert own.wanted() == 100


def test_an_operator_pins_the_limit_gives_another_target_and_hands_it_back() -> None:
    own = tuner()
    own.steer(Adjustment(batch_rows=30))
    assert own.wanted() == 30
    own.change(30, 1)
    own.measured(1, 30, 100.0, MUCH)
    assert own.wanted() is None
    assert own.shown() == {
        "rows": 30,
        "by": "operator",
        "reason": "an operator has set it",
        "changes": 1,
        "pause_seconds": 0.0,
    }
    own.steer(Adjustment(batch_seconds=200.0))
    own.measured(2, 30, 50.0, MUCH)
    assert own.wanted() == 42
    assert own.shown()["target_seconds"] == 200.0


def test_a_change_that_fails_is_tried_again_after_30_seconds() -> None:
    now = [0.0]
    own = tuner(now=now, is_on=False)
    own.steer(Adjustment(batch_rows=30))
    assert own.wanted() == 30
    own.failed("no broker" + "!" * 1000)
    assert own.wanted() is None
    shown = own.shown()
    assert (shown["rows"], shown["reason"][:44]) == (100, "the limit cannot change now: no broker!!!!!!")
    assert len(shown["reason"]) <= 300
    now[0] = 31.0
    assert own.wanted() == 30


def test_the_measured_batches_are_bounded_and_keep_those_of_other_sizes() -> None:
    found = list[Batch]()
    for number in range(500):
        found = remembered([*found, Batch(100, 8.0, MUCH, 100 + min(number, 490) // 100)])
    assert len(found) == 13
    assert [each.limit for each in found[:5]] == [100, 101, 102, 103, 104]
    for number in range(500):
        found = remembered([*found, Batch(100, 8.0, MUCH, 100 + number)])
    assert len(found) == 24


def test_a_batch_that_was_planned_before_a_change_does_not_raise_the_limit() -> None:
    own = tuner(begin=800)
    own.measured(0, 800, 30.0, MUCH)
    assert own.wanted() == 400
    own.change(400, 1)
    own.measured(1, 800, 3.0, MUCH)
    assert own.wanted() is None
    own.measured(2, 400, 1.0, MUCH)
    assert own.wanted() == 800


def test_a_limit_below_the_number_of_partitions_rises_while_rows_wait() -> None:
    own = tuner(begin=10)
    for number in range(3):
        own.measured(number, 32, 1.0, MUCH)
    assert own.wanted() == 20
