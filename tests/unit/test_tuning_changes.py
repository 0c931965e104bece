"""The decision where names, definitions, masters and operators change between runs."""

from typing import Any

import pytest

from orchestrator.tuning.resources import Resource
from orchestrator.tuning.samples import samples_of
from tests.tuning_runs import CLUSTER, KEY, LOCAL, choice, decided, had, run

SMALL = {**CLUSTER, "spark.executor.memory": "1g"}


def of_small(number: int, memory: str, **facts: Any) -> dict[str, Any]:
    """A run whose definition asks for 1 GiB."""
    return had(memory, number, **{"asked": SMALL, **facts})


def test_a_change_by_hand_is_kept_until_a_run_has_measured_it() -> None:
    asked = {**CLUSTER, "spark.executor.memory": "6g"}
    failed = {**run(4, asked=asked), "state": "failed", "class": "user"}
    found = choice(decided([had("1024m", number) for number in range(1, 4)] + [failed], asked=asked))
    assert (found.after, found.rule) == (6144, "by_hand")


def test_two_definitions_of_one_name_are_tuned_each_by_its_own_runs() -> None:
    runs = list[dict[str, Any]]()
    last = {"8g": 0.0, "1g": 0.0}
    for number in range(1, 30):
        asked = CLUSTER if number % 2 else SMALL
        peak = 2000.0 if number % 2 else 900.0
        found = choice(decided(runs, asked=asked))
        last[asked["spark.executor.memory"]] = found.after
        settings = {**asked, "spark.executor.memory": f"{found.after:.0f}m"}
        short = {"state": "failed", "short_of": "executor.heap"} if peak > found.after else {}
        runs.append(run(number, asked=asked, settings=settings, peak=min(peak, found.after), **short))
    assert 2000 < last["8g"] < 3000, "no longer what is asked for each time"
    assert 900 < last["1g"] < 1300


def test_a_definition_changed_back_gets_what_it_asks_for() -> None:
    runs = [had("1024m", 1), had("1024m", 2), of_small(3, "1g"), of_small(4, "1g")]
    assert choice(decided(runs)).rule == "by_hand"


def test_runs_with_a_local_master_say_nothing_about_runs_on_a_cluster_nor_the_other_way() -> None:
    driver = Resource.DRIVER_MEMORY
    cluster = {**CLUSTER, "spark.driver.memory": "8g"}
    small = {**cluster, "spark.driver.memory": "512m"}
    runs = [run(number, asked=cluster, settings=small, peak=300) for number in range(1, 6)]
    decision = decided(runs, asked=LOCAL)
    assert (choice(decision, driver).after, choice(decision, driver).rule) == (8192, "unknown")
    assert decision.left_out == "5 runs ran on a cluster"
    decision = decided([run(1, asked=LOCAL)], asked=cluster)
    assert choice(decision, driver).rule == "unknown"
    assert decision.left_out == "1 run ran with a local master"


@pytest.mark.parametrize("settings", [None, {}, {"spark.executor.memory": "8g"}, []])
def test_a_run_without_its_resources_is_no_sample(settings: object) -> None:
    """What it had would be taken for Spark's default, which may be far less."""
    short = {**run(1), "settings": settings, "state": "failed", "short_of": "executor.heap", "asked": {}}
    decision = decided([short])
    assert decision.left_out == "1 run did not record its resources"
    assert choice(decision).after == 8192


def test_a_definition_that_begins_to_state_its_input_is_not_compared_with_counted_rows() -> None:
    counted = {"input_rows": 10**6}
    before = [had("2048m", number, metrics=counted) for number in (1, 2)]
    since = [had("2048m", 3, metrics=counted, input=2.5e11)]
    for runs in (before, before + since):
        assert choice(decided(runs, input=2.5e11)).after <= 2048
    grown = choice(decided(before + since, input=5e11))
    assert grown.after > choice(decided(before + since, input=2.5e11)).after, "stated ones are compared"


def test_runs_that_counted_bytes_and_runs_that_counted_rows_are_not_compared() -> None:
    slow = {"cpu_seconds": 900.0, "input_rows": 10}
    runs = [run(number, metrics={"input_bytes": 10}) for number in (1, 2)]
    runs += [had("2048m", number, metrics=slow) for number in (3, 4)]
    assert choice(decided(runs)).after <= 2048, "nobody knows whether they read as much"


def test_numbers_at_the_limits_of_floats_are_unknown() -> None:
    """A driver writes its own numbers; a plot divides by them."""
    (sample,) = samples_of([run(1, metrics={"seconds": 5e-324, "input_bytes": 1e-300})], KEY).all
    assert (sample.seconds, sample.input) == (None, None)
