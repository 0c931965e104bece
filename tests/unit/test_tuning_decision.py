"""The decision about the resources of a run: which runs count, which limit wins, and the sentences."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.config.tuning import PoolTuning
from orchestrator.history.key import Key
from orchestrator.tuning.decision import Choice, Situation, decide
from orchestrator.tuning.record import StoredDecision, TuningRecord
from orchestrator.tuning.resources import Resource
from tests.tuning_runs import CLUSTER, HEAP, KEY, LOCAL, MIB, choice, decided, had, run


# ---------------------------------------------------------------------- the usual case
def test_an_oversized_heap_falls_by_half_with_the_reason_in_one_sentence() -> None:
    decision = decided([run(1)])
    found = choice(decision)
    assert (found.before, found.rule) == (8192, "shrink")
    assert 4096 <= found.after < 6144
    assert re.fullmatch(
        r"it falls from 8192m to \d+m: the last run would have needed 1000m at most, for which 13\d\dm is"
        " enough; a step is limited",
        found.why,
    )
    assert decision.properties["spark.executor.memory"] == f"{found.after:.0f}m"


def test_a_smaller_heap_takes_no_memory_from_python() -> None:
    found = decided([run(1)]).properties
    assert found["spark.executor.memoryOverhead"] == "819m", "the share of the heap that was asked for"


@pytest.mark.parametrize(
    ("more", "overhead"),
    [
        ({"spark.master": "k8s://h:6443"}, "3277m"),
        ({"spark.master": "k8s://h:6443", "spark.kubernetes.memoryOverheadFactor": "0.2"}, "1638m"),
        ({"spark.executor.memoryOverheadFactor": "0.3"}, "2458m"),
        ({"spark.executor.memoryOverheadFactor": "nan"}, "819m"),
    ],
)
def test_a_smaller_heap_leaves_the_share_that_spark_takes_of_the_larger_one(
    more: dict[str, str], overhead: str
) -> None:
    asked = {**CLUSTER, **more}
    decision = decided([run(1, asked=asked)], asked=asked)
    assert choice(decision).rule == "shrink"
    assert choice(decision, Resource.EXECUTOR_OVERHEAD).rule == "unknown"
    assert decision.properties["spark.executor.memoryOverhead"] == overhead


def test_a_name_without_runs_gets_what_its_definition_asks_for() -> None:
    decision = decided([])
    assert decision.properties == {}
    assert choice(decision).why == "it stays at 8192m: no run of this code has measured it"


def test_with_a_local_master_only_the_driver_is_tuned() -> None:
    decision = decided([run(1, asked=LOCAL)], asked=LOCAL)
    assert {each.resource for each in decision.choices} == {Resource.DRIVER_MEMORY, Resource.DRIVER_OVERHEAD}
    assert choice(decision, Resource.DRIVER_MEMORY).rule == "shrink"


def test_what_spark_decides_is_left_alone() -> None:
    dynamic = {**CLUSTER, "spark.dynamicAllocation.enabled": "true"}
    found = {each.resource for each in decided([run(1, asked=dynamic)], asked=dynamic).choices}
    assert Resource.EXECUTOR_INSTANCES not in found
    assert Resource.EXECUTOR_CORES not in found, "the master chooses them"


def test_an_allocation_that_stays_says_whether_it_is_a_limit() -> None:
    least = choice(decided([had("512m", 1, peak=200)]))
    assert least.why.startswith("it stays at 512m, which is a limit: ")
    near = choice(decided([had("704m", 1, peak=500)]))
    assert near.after == 704
    assert near.why.endswith(" is too near to it to change")


def test_a_missing_signal_leaves_its_resource_alone() -> None:
    found = decided([run(1, metrics={"executors": {"number": 4}})])
    assert choice(found).rule == "unknown"
    assert choice(found, Resource.DRIVER_MEMORY).rule != "unknown"


def test_idle_executors_are_fewer_next_time_but_never_more_than_asked_for() -> None:
    instances = Resource.EXECUTOR_INSTANCES
    idle = choice(decided([run(1, metrics={"task_seconds": 60.0})]), instances)
    assert idle.after < 4
    busy = choice(decided([run(1, metrics={"task_seconds": 800.0})]), instances)
    assert busy.after == 4


def test_cores_follow_only_where_there_is_one_executor() -> None:
    asked = {**CLUSTER, "spark.executor.cores": "2"}
    idle = {"task_seconds": 10.0}
    cores = Resource.EXECUTOR_CORES
    assert choice(decided([run(1, asked=asked, metrics=idle)], asked=asked), cores).rule == "unknown"
    alone = {**asked, "spark.executor.instances": "1"}
    found = decided([run(1, asked=alone, metrics=idle, executors={"number": 1})], asked=alone)
    assert choice(found, cores).after == 1
    assert choice(found, Resource.EXECUTOR_INSTANCES).after == 1


# ---------------------------------------------------------------------- which runs count
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"code": "0ther"}, "1 run ran other code"),
        ({"parameters": "0ther"}, "1 run had parameters of another class"),
        ({"code": None}, "1 run came from a version that did not record its code"),
        ({"parameters": None}, "1 run came from a version that did not record its code"),
        ({"metrics": {"shared": True}}, "1 run ran in a JVM that jobs share"),
        ({"state": "closed"}, "1 run never started"),
        ({"ended": "2026-12-24T00:00:00Z"}, "1 run ended in the future, by the clock of its host"),
        ({"ended": "yesterday"}, "1 run has no valid time"),
        ({"ended": None}, "1 run has no valid time"),
    ],
)
def test_a_run_that_is_no_sample_is_left_out_with_the_reason(change: dict[str, Any], sentence: str) -> None:
    decision = decided([{**run(1), **change}])
    assert decision.left_out == sentence
    assert decision.runs == 0
    assert decision.properties == {}


def test_a_renamed_definition_begins_anew_and_a_changed_one_too() -> None:
    runs = [run(number) for number in range(1, 6)]
    assert decided(runs).properties
    assert decided(runs).runs == 5
    changed = decide(runs, Situation(Key("changed", "-"), CLUSTER))
    assert changed.properties == {}
    assert changed.left_out == "5 runs ran other code"


def test_runs_before_a_reset_do_not_count() -> None:
    runs = [run(1), run(2), run(3, peak=5000)]
    assert decided(runs, forgotten="key-2").runs == 1
    assert decided(runs, forgotten="key-9").runs == 3, "it has left the history, so all runs are later"


@pytest.mark.parametrize("state", ["failed", "killed", "lost"])
def test_a_run_that_did_not_succeed_lets_nothing_shrink(state: str) -> None:
    runs = [run(1), {**run(2), "state": state}]
    found = choice(decided(runs))
    assert found.after == found.before == 8192
    assert found.why.endswith("of the last 2 runs 1 did not succeed")


# ---------------------------------------------------------------------- out of memory
def test_a_run_out_of_heap_is_followed_by_one_with_half_as_much_again() -> None:
    runs = [had("1024m", 1), {**had("1024m", 2), "state": "failed", "short_of": "executor.heap"}]
    found = choice(decided(runs))
    assert (found.rule, found.after) == ("short", 1536)
    assert found.why == "it rises from 1024m to 1536m: the last run was out of memory"


@pytest.mark.parametrize("what", ["container", "overhead"])
def test_a_killed_container_gets_more_beside_its_heap_not_more_heap(what: str) -> None:
    asked = {**CLUSTER, "spark.executor.memoryOverhead": "512m"}
    decision = decided([], asked=asked, before=asked, short_of=f"executor.{what}")
    assert decision.properties == {"spark.executor.memoryOverhead": "768m"}


def test_the_next_attempt_after_one_out_of_memory_has_more_up_to_a_bound() -> None:
    def after(conf: str, **facts: Any) -> Choice:
        given = {**CLUSTER, "spark.executor.memory": conf}
        decision = decided([], before=given, short_of="executor.heap", **facts)
        return choice(decision)

    assert after("8g").after == 12288
    assert after("30g").after == 4 * 8192, "four times what the definition asks for"
    at_the_end = after("32g")
    assert at_the_end.after == 4 * 8192
    assert at_the_end.why == (
        "the attempt before was out of memory with 32768m, which is all that is allowed"
    )
    assert after("8g", caps={HEAP: 9000.0}).after == 9000


def test_nothing_grows_beyond_the_memory_of_the_host_and_what_was_asked_for_stays() -> None:
    had_all = {**LOCAL, "spark.driver.memoryOverhead": "1g"}

    def after(host: float) -> float:
        facts: dict[str, Any] = {"before": had_all, "short_of": "driver.heap"}
        decision = decided([], asked=had_all, hosts={"driver": host}, **facts)
        return choice(decision, Resource.DRIVER_MEMORY).after

    assert after(24_000) == 12_288
    assert after(10_000) == 8_976
    assert after(4_000) == 8_192


def test_a_retry_has_no_less_than_an_attempt_before_that_was_not_tuned() -> None:
    runs = [run(number) for number in range(1, 4)]
    assert choice(decided(runs)).after < 8192
    found = choice(decided(runs, before=CLUSTER))
    assert (found.rule, found.after) == ("retry", 8192)
    assert found.why.startswith("it stays at 8192m, as in the attempt before; without that: it falls from")
    assert "spark.executor.memory" not in decided(runs, before=CLUSTER).properties


def test_a_run_out_of_memory_without_further_words_was_short_of_heap() -> None:
    runs = [had("1024m", 1), {**had("1024m", 2), "state": "failed", "class": "memory"}]
    assert choice(decided(runs)).after == 1536


def test_executors_lost_for_want_of_memory_count_although_the_run_succeeded() -> None:
    runs = [had("2048m", 1), had("2048m", 2, executors={"lost_memory": {"heap": 1}})]
    assert choice(decided(runs)).rule == "short"


# ---------------------------------------------------------------------- which limit wins
def test_a_pin_of_an_operator_wins_over_that_of_the_definition() -> None:
    kept = frozenset({HEAP})
    assert choice(decided([run(1)], kept=kept)).why == "the definition pins it: it stays at 8192m"
    found = choice(decided([run(1)], kept=kept, pins={HEAP: 3072.0}))
    assert (found.after, found.why) == (3072, "an operator has pinned it to 3072m")


def test_a_cap_wins_over_what_the_definition_asks_for_and_its_pin() -> None:
    for kept in (frozenset[Resource](), frozenset({HEAP})):
        found = choice(decided([], kept=kept, caps={HEAP: 2048.0}))
        assert (found.after, found.rule) == (2048, "capped")
        assert found.why.startswith("an operator has capped it at 2048m; without that: ")


def test_the_container_wins_over_everything_and_the_heap_gives_way_first() -> None:
    overhead = Resource.EXECUTOR_OVERHEAD
    decision = decided([], pins={HEAP: 8192.0, overhead: 1024.0}, containers={"executor": 4096.0})
    assert (choice(decision).after, choice(decision, overhead).after) == (3072, 1024)
    assert "heap and overhead together have 4096m in a container" in choice(decision).why


def test_a_container_with_room_for_the_needs_leaves_both_what_spark_needs_at_least() -> None:
    overhead, beside = Resource.EXECUTOR_OVERHEAD, 650
    executors = {"heap_peak_bytes": 200 * MIB, "jvm_rss_peak_bytes": (200 + beside) * MIB}
    given = {"spark.executor.memory": "512m", "spark.executor.memoryOverhead": "512m"}
    runs = [run(1, settings={**CLUSTER, **given}, executors=executors)]
    decision = decided(runs, containers={"executor": 1024.0})
    assert choice(decision).after == HEAP.least
    assert choice(decision, overhead).after == 512


def test_limits_that_contradict_each_other_end_within_the_container() -> None:
    overhead = Resource.EXECUTOR_OVERHEAD
    decision = decided([], pins={overhead: 4096.0}, containers={"executor": 1024.0})
    assert choice(decision).after + choice(decision, overhead).after == 1024
    assert choice(decision).after == HEAP.least


def test_a_container_too_small_for_any_jvm_of_spark_is_refused() -> None:
    assert PoolTuning(executor_container="896m").containers == {"executor": 896.0}
    with pytest.raises(
        ValueError, match="800m is too small for a JVM of Spark with its overhead: write at least 896m"
    ):
        PoolTuning(executor_container="800m")


def test_a_change_by_hand_counts_and_the_tuning_goes_on_from_there() -> None:
    runs = [had("1024m", number) for number in range(1, 4)]
    asked = {**CLUSTER, "spark.executor.memory": "6g"}
    found = choice(decided(runs, asked=asked))
    assert (found.after, found.rule) == (6144, "by_hand")
    assert found.why == (
        "it was changed from 8192m to 6144m since the last run: the next run gets that, and the tuning goes"
        " on from there"
    )
    assert choice(decided([*runs, run(4, asked=asked)], asked=asked)).rule == "shrink"


def test_a_pin_counts_where_the_definition_leaves_the_choice_to_the_cluster() -> None:
    cores = Resource.EXECUTOR_CORES
    decision = decided([], pins={cores: 2.0})
    assert decision.properties == {"spark.executor.cores": "2"}
    assert choice(decision, cores).to_json()["asked"] == ""
    dynamic = {**CLUSTER, "spark.dynamicAllocation.enabled": "true"}
    assert decided([], asked=dynamic, pins={Resource.EXECUTOR_INSTANCES: 2.0}).properties == {}


def test_a_definition_that_asks_for_less_than_the_least_amount_gets_it() -> None:
    asked = {**LOCAL, "spark.driver.memory": "480m", "spark.driver.memoryOverhead": "128m"}
    decision = decided([run(1, asked=asked, peak=100)], asked=asked)
    assert decision.properties == {}
    for each in decision.choices:
        assert each.why.startswith(f"it stays at {each.asked:.0f}m, which is a limit: ")


@pytest.mark.parametrize("peak", [7000, 100, 6300])
def test_an_allocation_beyond_a_new_cap_says_so(peak: float) -> None:
    found = choice(decided([run(1, peak=peak), run(2, peak=peak)], caps={HEAP: 2000.0}))
    assert found.after == 2000
    assert "rises" not in found.why
    assert "stays" not in found.why


def test_a_run_that_was_short_of_all_that_is_allowed_says_so() -> None:
    short = {"state": "failed", "short_of": "executor.heap"}
    found = choice(decided([had("32g", 1, asked=CLUSTER, **short)]))
    assert found.why == "it stays at 32768m, which is all that is allowed: the last run was out of memory"


# ---------------------------------------------------------------------- what is stored
def stored(runs: int, *, run_name: str = "", peak: float = 1000) -> StoredDecision:
    situation = Situation(KEY, CLUSTER, now="2026-11-02T00:00:00Z")
    decision = decide([run(number, peak=peak) for number in range(1, runs + 1)], situation)
    return StoredDecision.of(decision, situation, at=f"{runs}", job="job", run=run_name)


def test_a_suggestion_that_says_the_same_replaces_the_last_one_or_is_not_stored() -> None:
    record = TuningRecord(name="n").with_decision(stored(1))
    assert record.with_decision(stored(1)) is record
    again = record.with_decision(stored(1).model_copy(update={"runs": 2}))
    assert [each.runs for each in again.decisions] == [2]
    assert len(again.with_decision(stored(3, peak=7000)).decisions) == 2


def test_an_attempt_has_one_decision_and_the_last_twenty_are_kept() -> None:
    record = TuningRecord(name="n").with_decision(stored(1, run_name="key-1"))
    assert record.with_decision(stored(1, run_name="key-1")) is record
    for number in range(2, 25):
        record = record.with_decision(stored(1, run_name=f"key-{number}"))
    assert [each.run for each in record.decisions] == [f"key-{number}" for number in range(5, 25)]


# ---------------------------------------------------------------------- any history
_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
_DAMAGED = st.recursive(
    _VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
_FIELDS = st.sampled_from(
    ["state", "metrics", "settings", "asked", "short_of", "ended", "code", "parameters", "input_bytes"]
)
_METRICS = st.sampled_from(["seconds", "gc_share", "executors", "driver", "task_seconds", "input_bytes"])


@given(
    st.lists(st.tuples(_FIELDS, _DAMAGED), max_size=3),
    st.lists(st.tuples(_METRICS, _DAMAGED), max_size=3),
    st.integers(100, 9000),
)
@settings(max_examples=200)
def test_no_entry_of_the_history_breaks_a_decision_or_leaves_the_bounds(
    fields: list[tuple[str, Any]], metrics: list[tuple[str, Any]], peak: int
) -> None:
    damaged = {**run(2, peak=peak, metrics=dict(metrics)), **dict(fields)}
    decision = decided([run(1), damaged, run(3)])
    for each in decision.choices:
        most = 4 * each.asked
        assert each.resource.least <= each.after <= max(most, each.resource.least)
        assert each.why


@given(st.integers(64, 40_000), st.integers(512, 40_000), st.integers(0, 3))
def test_a_decision_depends_on_nothing_but_its_arguments(peak: int, memory: int, more: int) -> None:
    runs = [had(f"{memory}m", number, peak=min(peak, memory)) for number in range(1, 2 + more)]
    situation = Situation(KEY, CLUSTER, now="2026-11-02T00:00:00Z")
    assert decide(runs, situation) == decide(list(runs), replace(situation))
