"""What a heap needs, and when it is too small: collections, spill, processor time, and what is kept."""

from typing import Any

import pytest

from orchestrator.tuning.decision import Choice
from orchestrator.tuning.resources import Resource
from tests.tuning_runs import CLUSTER, LOCAL, MIB, choice, decided, had, run


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        ({"gc_share": 0.12}, "garbage collection took 12% of the last run"),
        ({"spill_disk_bytes": 5}, "the last run spilled to disk"),
    ],
)
def test_a_heap_that_is_busy_does_not_shrink(metrics: dict[str, Any], sentence: str) -> None:
    found = choice(decided([run(1, metrics=metrics)]))
    assert found.after == 8192
    assert found.why.endswith(sentence)


def test_a_heap_that_made_a_run_spill_grows_back_and_is_kept() -> None:
    runs = [run(1), run(2), had("1024m", 3, peak=1000, metrics={"spill_disk_bytes": 9})]
    found = choice(decided(runs))
    assert found.after > 1024
    assert found.why.endswith("the last run suffered from it, as runs with more did not")
    runs += [had("1280m", number, peak=600) for number in range(4, 10)]
    later = choice(decided(runs))
    assert later.after >= 1.05 * 1024, "it does not fall to where it spilled"


def test_runs_that_work_longer_with_less_heap_are_noticed_the_second_time() -> None:
    slow = {"cpu_seconds": 650.0}
    runs = [run(1), run(2), had("2048m", 3, metrics=slow)]
    assert choice(decided(runs)).after <= 2048
    assert choice(decided([*runs, had("2048m", 4, metrics=slow)])).after > 2048


def test_runs_that_take_longer_as_the_host_is_busy_raise_no_heap() -> None:
    slow = {"seconds": 300.0, "task_seconds": 2000.0}
    runs = [run(1), run(2), *(had("2048m", number, metrics=slow) for number in range(3, 6))]
    assert choice(decided(runs)).after <= 2048


def test_executors_come_back_where_runs_take_longer_without_them() -> None:
    few: dict[str, Any] = {
        "settings": {**CLUSTER, "spark.executor.instances": "2"},
        "metrics": {"seconds": 150.0},
    }
    runs = [run(1), run(2), run(3, **few), run(4, **few)]
    assert choice(decided(runs), Resource.EXECUTOR_INSTANCES).after > 2


@pytest.mark.parametrize(("task_seconds", "rule"), [(0.2, "shrink"), (700.0, "grow")])
def test_the_first_collections_of_a_jvm_are_no_pressure_on_a_short_run(
    task_seconds: float, rule: str
) -> None:
    """As measured: tasks of 0.2 s with 17 ms of collections, in a heap that was almost empty."""
    before = run(1, peak=155, metrics={"task_seconds": task_seconds, "gc_share": 0.0})
    strained = {"task_seconds": task_seconds, "gc_share": 0.1018}
    after = [had("4096m", number, peak=155, metrics=strained) for number in (2, 3)]
    assert choice(decided([before, *after])).rule == rule


def test_more_collections_than_usual_stop_a_heap_once_and_raise_it_the_second_time() -> None:
    strained = {"gc_share": 0.1}
    runs = [run(1, peak=700), run(2, peak=700), had("1024m", 3, peak=700, metrics=strained)]
    found = choice(decided(runs))
    assert (found.rule, found.after) == ("held", 1024)
    runs.append(had("1024m", 4, peak=700))
    assert choice(decided(runs)).after < 1024, "the share varies"
    runs.append(had("960m", 5, peak=700, metrics=strained))
    assert choice(decided(runs)).after > 1024


def test_a_share_of_collections_that_varies_raises_no_heap() -> None:
    runs = [run(1, peak=700), run(2, peak=700)]
    runs += [
        had("1024m", n, peak=700, metrics={"gc_share": 0.1 if n % 5 == 0 else 0.05}) for n in range(3, 31)
    ]
    assert choice(decided(runs)).after == 1024
    often = [had("1024m", n, peak=700, metrics={"gc_share": 0.1 if n % 2 else 0.05}) for n in range(3, 31)]
    assert choice(decided([*runs[:2], *often])).after > 1024


def test_a_heap_that_is_almost_always_collected_grows_at_once() -> None:
    runs = [run(1, peak=700), had("1024m", 2, peak=700, metrics={"gc_share": 0.3})]
    assert choice(decided(runs)).after > 1024


def test_what_runs_suffered_from_twice_is_not_tried_again() -> None:
    strained = {"gc_share": 0.1}
    runs = [
        run(1, peak=700),
        run(2, peak=700),
        *(had("1024m", n, peak=700, metrics=strained) for n in (3, 4)),
    ]
    runs += [had("1280m", number, peak=700) for number in range(5, 25)]
    assert choice(decided(runs)).after > 1.1 * 1024


def test_runs_are_compared_by_their_rows_as_some_sources_count_no_bytes() -> None:
    """A large table of a database, and a small lookup whose bytes are always the same."""
    lookup = {"input_bytes": 5_000_000}
    runs = [run(n, peak=700, metrics={**lookup, "input_rows": 1_000_000}) for n in (1, 2, 3)]
    more: dict[str, Any] = {**lookup, "input_rows": 3_000_000, "cpu_seconds": 1500.0}
    runs += [had("4160m", 4, peak=700, metrics=more), had("2112m", 5, peak=700, metrics=more)]
    assert choice(decided(runs)).rule == "shrink", "three times the rows take longer, not for want of heap"


def test_suffering_once_at_another_level_is_no_second_time() -> None:
    spilled: dict[str, Any] = {"peak": 700, "metrics": {"spill_disk_bytes": 9}}
    runs = [run(1, peak=700), run(2, peak=700), had("4096m", 3, **spilled)]
    runs += [had("896m", number, peak=700) for number in range(4, 24)]
    assert choice(decided([*runs, had("896m", 24, **spilled)])).after < 1280


def test_what_a_short_local_run_keeps_between_its_tasks_counts_although_spark_polls_during_tasks_only() -> (
    None
):
    executors = {"heap_live_peak_bytes": 700 * MIB, "heap_peak_bytes": 200 * MIB}
    driver = {"heap_live_peak_bytes": 700 * MIB, "heap_peak_bytes": 1100 * MIB, "rss_peak_bytes": 1500 * MIB}

    def needed(seconds: float) -> float | None:
        metrics = {"driver": driver, "seconds": seconds}
        runs = [run(1, asked=LOCAL, executors=executors, metrics=metrics)]
        return choice(decided(runs, asked=LOCAL), Resource.DRIVER_MEMORY).largest

    assert needed(6.0) == pytest.approx(1100)
    assert needed(100.0) == pytest.approx(700), "heartbeats of the driver have seen all of it"


def test_a_local_run_whose_managed_memory_is_unknown_is_judged_by_its_peak() -> None:
    """As measured: a join of 6 s that kept 280 MiB, but whose hash relation needed 600 MiB of heap."""
    local = {"heap_live_peak_bytes": 280 * MIB, "heap_peak_bytes": 0, "cores": 2, "number": 1}
    driver = {"heap_live_peak_bytes": 280 * MIB, "heap_peak_bytes": 600 * MIB, "rss_peak_bytes": 900 * MIB}

    def needed(**executors: int) -> float | None:
        metrics = {"driver": driver, "gc_share": 0.06}
        runs = [run(1, asked=LOCAL, executors={**local, **executors}, metrics=metrics)]
        return choice(decided(runs, asked=LOCAL), Resource.DRIVER_MEMORY).largest

    assert needed() == 600
    assert needed(heap_peak_bytes=590 * MIB) == pytest.approx(1.6 * 280)
    given = {"managed_peak_bytes": 173 * MIB}
    assert needed(heap_peak_bytes=590 * MIB, **given) == pytest.approx(173 / 0.6 + 300)


def test_what_the_memory_manager_gave_out_is_needed_however_small_the_polled_heap_was() -> None:
    """As measured: a join with 89 MiB in its cache and 68 MiB of hash relations fails with 512 MiB."""
    given = [91, 157, 109, 123, 133]
    heaps = [("5760m", 746), ("2944m", 481), ("1536m", 401), ("832m", 414), ("640m", 303)]
    runs = [
        had(memory, number, peak=peak, executors={"managed_peak_bytes": managed * MIB})
        for number, (managed, (memory, peak)) in enumerate(zip(given, heaps, strict=True))
    ]
    found = choice(decided(runs))
    assert found.largest == pytest.approx(133 / 0.6 + 300), "a much larger heap has larger pages"
    assert found.after >= 576
    driver = choice(decided(runs), Resource.DRIVER_MEMORY).largest
    assert driver is not None
    assert driver != found.largest, "tasks run in executors"


def test_a_heap_that_is_collected_at_little_cost_does_not_grow_for_one_high_figure() -> None:
    """As measured: of one young collection there were 440 MiB left, of all others 200."""

    def runs(*lives: int, gc_share: float = 0.05, **more: Any) -> list[dict[str, Any]]:
        return [
            run(
                number,
                asked=LOCAL,
                settings={**LOCAL, "spark.driver.memory": "640m"},
                executors={"heap_peak_bytes": 630 * MIB, "heap_live_peak_bytes": live * MIB},
                metrics={
                    "driver": {"heap_peak_bytes": 630 * MIB, "heap_live_peak_bytes": live * MIB},
                    "gc_share": gc_share,
                    **more,
                },
            )
            for number, live in enumerate(lives)
        ]

    def after(runs: list[dict[str, Any]]) -> Choice:
        return choice(decided(runs, asked=LOCAL), Resource.DRIVER_MEMORY)

    found = after(runs(330, 380, 440))
    assert (found.rule, found.after) == ("held", 640)
    assert found.why.endswith("its garbage was collected at little cost")
    assert after(runs(330, 380, 440, gc_share=0.1)).after > 640
    assert after(runs(330, 380, 440, spill_disk_bytes=9)).after > 640
    given = runs(330, 380, 440)
    given[-1]["metrics"]["executors"]["managed_peak_bytes"] = 250 * MIB
    assert after(given).after > 640, "the memory manager needs it"
