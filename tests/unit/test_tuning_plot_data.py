"""What a plot of a tuning shows: which runs, their amounts, the target of the law, and the marks."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tuning.plot_data import Mark, PlotData, measured_resources, plot_data
from orchestrator.tuning.record import TuningRecord
from orchestrator.tuning.resources import Resource

MIB = 1 << 20
HEAP = Resource.EXECUTOR_MEMORY


def run(number: int, heap: str = "4096m", *, peak: float = 1000, **facts: Any) -> dict[str, Any]:
    """A run on a cluster that succeeded."""
    return {
        "run": f"key-{number}",
        "state": "succeeded",
        "ended": f"2026-11-01T00:{number:02}:00Z",
        "settings": {
            "spark.master": "spark://h:7077",
            "spark.executor.memory": heap,
            "spark.executor.instances": "2",
        },
        "code": "c0de",
        "parameters": "-",
        "metrics": {
            "seconds": 60.0 + number,
            "gc_share": 0.05,
            "spill_disk_bytes": 0,
            "executors": {"number": 2, "cores": 2, "heap_peak_bytes": int(peak * MIB)},
            **facts.pop("metrics", {}),
        },
        **facts,
    }


def decision(of_run: str, rule: str, after: str = "2048m", why: str = "a reason") -> dict[str, Any]:
    """A stored decision about the heap of executors; a suggestion without a run."""
    return {
        "at": "2026-11-01T00:00:00Z",
        "run": of_run,
        "code": "c0de",
        "parameters": "-",
        "runs": 1,
        "choices": {HEAP.value: {"rule": rule, "after": after, "why": why}},
    }


def plotted(
    runs: Sequence[Mapping[str, Any]], *decisions: Mapping[str, Any], forgotten: str = ""
) -> PlotData:
    record = TuningRecord.model_validate({"name": "n", "decisions": decisions, "forgotten": forgotten})
    return plot_data(record, runs, HEAP)


def test_each_run_shows_what_it_had_and_used_and_how_long_it_took() -> None:
    (point,) = plotted([run(1, metrics={"spill_disk_bytes": 3 * MIB})]).points
    assert (point.run, point.ended, point.allocated) == ("key-1", "2026-11-01T00:01:00Z", 4096)
    assert (point.peak, point.spilled, point.seconds) == (1000, 3, 61)
    assert point.demand == 1000
    assert point.target is None, "the law knows nothing before the first run"
    assert point.marks == ()


def test_the_target_of_a_run_follows_from_those_before_it() -> None:
    first = plotted([run(1), run(2)]).points
    other = plotted([run(1), run(2, peak=3000)]).points
    assert first[1].target == other[1].target
    assert first[1].target is not None
    assert 1000 < first[1].target < 1500


def test_each_change_of_an_allocation_is_marked() -> None:
    points = plotted([run(1), run(2, "2048m"), run(3, "2048m"), run(4, "3072m")]).points
    assert [point.marks for point in points] == [(), (Mark.LOWERED,), (), (Mark.RAISED,)]


def test_a_run_out_of_memory_has_a_mark_and_no_demand() -> None:
    short = run(2, state="failed", short_of="executor.heap")
    point = plotted([run(1), short]).points[1]
    assert (point.marks, point.demand) == ((Mark.SHORT,), None)


def test_a_run_that_failed_otherwise_is_not_marked_as_out_of_memory() -> None:
    point = plotted([run(1), run(2, state="failed")]).points[1]
    assert point.marks == (Mark.FAILED,)


def test_a_run_that_spilled_as_runs_with_more_did_not_is_pressed() -> None:
    runs = [run(1), run(2), run(3, "2048m", metrics={"spill_disk_bytes": MIB})]
    assert plotted(runs).points[2].marks == (Mark.LOWERED, Mark.PRESSED)


@pytest.mark.parametrize(
    ("rule", "mark"),
    [
        ("pinned", Mark.PINNED),
        ("capped", Mark.LIMITED),
        ("container", Mark.LIMITED),
        ("by_hand", Mark.BY_HAND),
    ],
)
def test_what_an_operator_or_a_limit_decided_is_marked_with_the_reason(rule: str, mark: Mark) -> None:
    point = plotted([run(1), run(2)], decision("key-2", rule)).points[1]
    assert (point.marks, point.why) == ((mark,), "a reason")


def test_after_a_reset_the_targets_begin_anew() -> None:
    points = plotted([run(1), run(2), run(3), run(4)], forgotten="key-2").points
    assert [point.target is None for point in points] == [True, False, True, False]
    assert points[2].marks == (Mark.RESET,)


def test_the_last_suggestion_is_the_next_run() -> None:
    found = plotted([run(1)], decision("", "shrink")).next
    assert found is not None
    assert (found.allocated, found.marks, found.why) == (2048, (Mark.LOWERED,), "a reason")


@pytest.mark.parametrize(
    "last",
    [decision("key-1", "shrink"), decision("", "shrink", "rubbish"), decision("", "x") | {"code": "o"}],
)
def test_without_a_suggestion_for_these_runs_there_is_no_next_one(last: dict[str, Any]) -> None:
    assert plotted([run(1)], last).next is None


def test_runs_of_other_code_are_left_out_with_the_reason() -> None:
    found = plotted([run(1, code="0ther"), run(2)])
    assert [point.run for point in found.points] == ["key-2"]
    assert found.left_out == "1 run ran other code"


def test_the_peak_of_a_local_driver_is_the_one_that_spark_polled() -> None:
    local = {"spark.master": "local[2]", "spark.driver.memory": "4g"}
    parts = {"driver": {"heap_peak_bytes": 900 * MIB}, "executors": {"heap_peak_bytes": 700 * MIB}}
    found = plot_data(TuningRecord(name="n"), [run(1, settings=local, metrics=parts)], Resource.DRIVER_MEMORY)
    assert found.points[0].peak == 700


def test_only_resources_that_runs_have_measured_are_offered() -> None:
    assert HEAP in measured_resources([run(1)])
    assert Resource.DRIVER_MEMORY not in measured_resources([run(1)])
    assert measured_resources([]) == []


_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(run(1), _junk)), max_size=4))
def test_damaged_runs_break_no_plot(damaged: list[dict[str, Any]]) -> None:
    found = plotted([*({**run(number), **each} for number, each in enumerate(damaged)), run(9)])
    assert found.points[-1].run == "key-9"
