"""The loop of runs and decisions: it does not raise memory for ever, swing, or run out again and again."""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from orchestrator.tuning.resources import Resource
from tests.tuning_runs import CLUSTER, HEAP, MIB, choice, decided, run

Outcome = Callable[[int, float], dict[str, Any]]
"""What a run reports, by its number and its allocation."""


def loop(
    count: int, outcome: Outcome, resource: Resource = HEAP, asked: Mapping[str, str] = CLUSTER
) -> tuple[list[float], list[dict[str, Any]]]:
    """The allocations of so many runs, each decided after those before it, and the runs."""
    given, runs = list[float](), list[dict[str, Any]]()
    for number in range(1, count + 1):
        amount = choice(decided(runs[-50:], asked=asked), resource).after
        job = runs[-1]["job"] if runs and runs[-1]["state"] == "failed" else f"job-{number}"
        settings = {**asked, resource.spark_property: resource.written(amount)}
        runs.append(run(number, asked=asked, settings=settings, job=job, **outcome(number, amount)))
        given.append(amount)
    return given, runs


def turns(given: Sequence[float]) -> int:
    steps = [after - before for before, after in itertools.pairwise(given) if after != before]
    return sum(a * b < 0 for a, b in itertools.pairwise(steps))


def test_a_program_that_fills_each_heap_with_garbage_gets_no_more_when_more_has_not_helped() -> None:
    for share in (0.1, 0.25):
        given, runs = loop(12, lambda _, heap: {"peak": 0.9 * heap, "metrics": {"gc_share": share}})  # noqa: B023
        assert given[0] == 8192
        assert max(given) < 1.6 * given[0]
        assert len(set(given)) == 2
        why = choice(decided(runs)).why
        assert why.endswith("at most: runs with less collected no more garbage")


def test_a_program_that_collects_less_with_more_heap_gets_more_until_it_is_enough() -> None:
    def outcome(_: int, heap: float) -> dict[str, Any]:
        return {"peak": min(0.9 * heap, 13_000), "metrics": {"gc_share": min(0.9, 0.4 * (8192 / heap) ** 2)}}

    given, _ = loop(12, outcome)
    assert given[-1] > 13_000
    assert turns(given) == 0


def test_a_program_that_becomes_slower_every_day_does_not_make_its_heap_swing() -> None:
    given, _ = loop(40, lambda day, _: {"metrics": {"cpu_seconds": 500 * 1.02**day, "gc_share": 0.03}})
    assert max(given[8:]) < 1600
    assert turns(given) <= 2


def test_a_peak_that_no_measurement_sees_makes_one_job_fail_not_one_of_seven() -> None:
    """It needs 1300 MiB for a moment, and measures 800."""

    def outcome(_: int, heap: float) -> dict[str, Any]:
        if heap < 1300:
            return {"state": "failed", "class": "memory", "short_of": "executor.heap"}
        return {"peak": 800, "metrics": {"gc_share": 0.05}}

    given, runs = loop(50, outcome)
    assert sum(each["state"] == "failed" for each in runs) == 1
    assert given[-1] < 1.3 * 1300


def test_a_rare_demand_that_was_measured_says_nothing_about_other_runs() -> None:
    large = {"job-12"}

    def outcome(number: int, heap: float) -> dict[str, Any]:
        need = 2500.0 if number >= 12 and large else 800.0
        if heap < need:
            return {"state": "failed", "class": "memory", "short_of": "executor.heap"}
        if number >= 12:
            large.clear()
        return {"peak": need, "metrics": {"gc_share": 0.05}}

    given, runs = loop(40, outcome)
    assert any(each["state"] == "failed" for each in runs)
    assert given[-1] < 1.5 * 800


@pytest.mark.parametrize(("heap_need", "overhead_need"), [(2900, 1000), (2500, 1200), (3300, 500)])
def test_a_container_that_is_large_enough_for_both_is_shared_so_that_it_is(
    heap_need: float, overhead_need: float
) -> None:
    overhead = Resource.EXECUTOR_OVERHEAD
    asked = {**CLUSTER, "spark.executor.memory": "3686m", "spark.executor.memoryOverhead": "410m"}
    runs, given = list[dict[str, Any]](), list[float]()
    for number in range(1, 30):
        decision = decided(runs, asked=asked, containers={"executor": 4096.0})
        heap, beside = choice(decision).after, choice(decision, overhead).after
        assert heap + beside <= 4096
        what = "container" if beside < overhead_need else "heap" if heap < heap_need else ""
        short = {"state": "failed", "short_of": f"executor.{what}"} if what else {}
        had = {"spark.executor.memory": f"{heap:.0f}m", "spark.executor.memoryOverhead": f"{beside:.0f}m"}
        used = min(heap, heap_need), min(beside, overhead_need)
        rss = {"jvm_rss_peak_bytes": int(sum(used) * MIB)}
        runs.append(run(number, asked=asked, settings=asked | had, peak=used[0], executors=rss, **short))
        given.append(heap)
    assert all(each["state"] == "succeeded" for each in runs[6:])
    assert turns(given[6:]) == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_number_of_executors_between_two_whole_ones_does_not_swing_between_them(seed: int) -> None:
    instances, draw = Resource.EXECUTOR_INSTANCES, random.Random(seed)  # noqa: S311 - not for security

    def outcome(_: int, number: float) -> dict[str, Any]:
        work = 100 * (1 + draw.uniform(-0.15, 0.15))
        times = {"task_seconds": work, "seconds": 60 + work / (2 * number), "gc_share": 0.03}
        return {"metrics": times, "executors": {"number": number}}

    given, runs = loop(40, outcome, instances, {**CLUSTER, instances.spark_property: "16"})
    assert given[0] == 16
    assert given[-1] <= 6
    assert turns(given) <= 2
    for number in range(2, 40):
        found = choice(decided(runs[:number], asked={**CLUSTER, instances.spark_property: "16"}), instances)
        assert (found.after == found.before) == found.why.startswith("it stays at ")
