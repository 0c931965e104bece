"""What an operator changes of a push while it runs."""

from typing import Any

import pytest

from spark_runner.push.adjustment import Adjustment
from spark_runner.push.errors import SettingError
from spark_runner.push.settings import LaneLimits, Limits


def test_changes_add_up_and_replace_the_limits_of_the_script() -> None:
    first = Adjustment().changed({"concurrency": 4}, pause=["b", "a"])
    second = first.changed({"rate": 2.5}, pause=["c"], resume=["a"])
    assert second.document() == {"concurrency": 4, "rate": 2.5, "paused": ["b", "c"]}
    assert Adjustment.of(second.document()) == second

    limits = second.applied(Limits(concurrency=9, buffer_records=7, lanes={"b": LaneLimits(concurrency=3)}))
    assert (limits.concurrency, limits.rate, limits.buffer_records) == (4, 2.5, 7)
    assert limits.lanes == {"b": LaneLimits(3, is_paused=True), "c": LaneLimits(is_paused=True)}


def test_no_change_leaves_the_limits_as_they_are() -> None:
    limits = Limits(concurrency=9, rate=3.0, lanes={"a": LaneLimits(rate=1.0)})
    assert Adjustment().applied(limits) == limits
    assert Adjustment().document() == {}


def test_the_limit_of_streams_is_pinned_and_given_back_to_the_tuning() -> None:
    pinned = Adjustment().changed({"batch_rows": 500, "batch_seconds": 2.5})
    assert pinned.document() == {"batch_rows": 500, "batch_seconds": 2.5}
    tuned = pinned.changed({"batch_rows": None, "is_tuned": True})
    assert tuned.document() == {"batch_seconds": 2.5, "is_tuned": True}
    assert str(tuned) == "batch_seconds 2.5, is_tuned True"


def test_a_push_is_suspended_and_resumed() -> None:
    suspended = Adjustment().changed({"is_suspended": True})
    assert suspended.applied(Limits()).is_suspended
    assert not suspended.changed({"is_suspended": False}).applied(Limits()).is_suspended


@pytest.mark.parametrize(
    "document",
    [
        {"concurrency": 0},
        {"concurrency": 10**10},
        {"rate": 10**400},
        {"concurrency": True},
        {"concurrency": 2.5},
        {"concurrency": "4"},
        {"rate": 0},
        {"rate": -1.0},
        {"rate": float("nan")},
        {"rate": float("inf")},
        {"buffer": -3},
        {"rollbacks": -1},
        {"paused": "a"},
        {"paused": [1]},
        {"paused": ["a"] * 1001},
        {"is_suspended": 1},
        {"batch_rows": 0},
        {"batch_rows": 10**10},
        {"batch_rows": 2.5},
        {"batch_rows": "many"},
        {"batch_seconds": 0},
        {"batch_seconds": 0.01},
        {"batch_seconds": float("nan")},
        {"batch_seconds": 10**6},
        {"is_tuned": "yes"},
    ],
)
def test_a_wrong_value_is_named(document: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=f"'{next(iter(document))}'"):
        Adjustment.of(document)


def test_the_error_of_a_wrong_value_is_short() -> None:
    with pytest.raises(SettingError) as caught:
        Adjustment.of({"rate": "x" * 100_000})
    assert len(str(caught.value)) < 150


def test_the_changes_have_a_line_for_people() -> None:
    made = Adjustment(concurrency=4, paused=("a", "b"), is_suspended=True)
    assert str(made) == "concurrency 4, paused a b, is_suspended True"


def test_further_fields_are_for_others() -> None:
    assert Adjustment.of({"by": "digest:ada", "concurrency": 2}) == Adjustment(concurrency=2)


@pytest.mark.parametrize("name", ["concurrency", "rate", "buffer"])
def test_a_limit_that_no_script_may_have_is_none(name: str) -> None:
    with pytest.raises(SettingError, match=f"'{name}' is 1.*; it must be a number above 0, and at most 1"):
        Adjustment.of({name: 10**400})
