"""The decision where names, definitions, masters and operators change between runs."""

from typing import Any

import pytest

from orchestrator.model.errors import CorruptTuning
from orchestrator.tuning.record import TuningRecord
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.samples import last_run, samples_of
from queues import encode
from tests.tuning_runs import CLUSTER, HEAP, KEY, LOCAL, MIB, choice, decided, had, run

OVERHEAD = Resource.EXECUTOR_OVERHEAD
SMALL = {**CLUSTER, "spark.executor.memory": "1g"}
TASKS = {
    "threads": ({**LOCAL, "spark.master": "local[2]"}, {**LOCAL, "spark.master": "local[8, 3]"}),
    "all threads": ({**LOCAL, "spark.master": "local"}, {**LOCAL, "spark.master": "local[*]"}),
    "cores": ({**CLUSTER, "spark.executor.cores": "2"}, {**CLUSTER, "spark.executor.cores": "8"}),
    "first cores": (
        {**CLUSTER, "spark.master": "yarn"},
        {**CLUSTER, "spark.master": "yarn", "spark.executor.cores": "4"},
    ),
    "all cores": ({**CLUSTER, "spark.executor.cores": "2"}, CLUSTER),
    "smaller tasks": (
        {**CLUSTER, "spark.executor.cores": "8", "spark.task.cpus": "8"},
        {**CLUSTER, "spark.executor.cores": "8"},
    ),
}


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


def hour(number: int, hours: int, **facts: Any) -> dict[str, Any]:
    return {
        **run(number, **facts),
        "state": "running",
        "hour": hours,
        "ended": f"2026-11-01T00:{number:02}:00Z",
    }


def test_a_stream_counts_once_however_long_it_runs() -> None:
    runs = [run(1), *(hour(2, hours, peak=3000) for hours in range(1, 21))]
    assert decided(runs).left_out == "19 runs covered an hour of a run that counts itself"
    assert decided(runs).runs == 2
    ended = decided([*runs, run(2, peak=3000)])
    assert (ended.runs, ended.left_out) == (2, "20 runs covered an hour of a run that counts itself")


@pytest.mark.parametrize("state", ["killed", "failed", "lost"])
def test_the_hours_of_a_stream_that_did_not_succeed_let_nothing_shrink_but_grow(state: str) -> None:
    runs = [hour(1, hours, peak=1000) for hours in (1, 2, 3)] + [{**run(1), "state": state, "metrics": {}}]
    assert choice(decided(runs)).rule == "held"
    large = [hour(1, hours, peak=8000) for hours in (1, 2, 3)] + [{**run(1), "state": state, "metrics": {}}]
    assert choice(decided(large)).rule == "grow"


def test_a_change_by_hand_after_hours_of_a_stream_counts() -> None:
    runs = [hour(1, 1), {**run(1), "state": "killed"}]
    assert choice(decided(runs, asked=SMALL)).rule == "by_hand"


def test_a_reset_is_not_at_a_run_from_the_future_after_which_none_would_ever_come() -> None:
    now = "2026-11-02T00:00:00Z"
    runs = [run(1), run(2), {**run(3), "ended": "2099-01-01T00:00:00Z"}]
    forgotten = last_run(runs, now)
    assert forgotten == "key-2"
    later = [*runs[:2], {**run(4), "ended": now}, runs[2]]  # as the history orders them
    assert decided(later, forgotten=forgotten, now=now).runs == 1
    assert last_run([], now) == ""


@pytest.mark.parametrize("field", ["pins", "caps"])
@pytest.mark.parametrize(
    ("resource", "amount"), [("driver.memory", 0.3), ("executor.instances", 0.4), ("driver.memory", 1e300)]
)
def test_an_amount_in_zookeeper_that_no_operator_could_set_is_damage(
    field: str, resource: str, amount: float
) -> None:
    with pytest.raises(CorruptTuning, match="is possible"):
        TuningRecord.decode("n", "/tuning/n", encode({field: {resource: amount}}))


def test_python_without_memory_of_its_own_counts_as_overhead() -> None:
    """0 is Spark's word for none."""

    def overhead(own: str) -> float:
        asked = {**CLUSTER, "spark.executor.pyspark.memory": own}
        memory = {"jvm_rss_peak_bytes": 1500 * MIB, "python_rss_peak_bytes": 900 * MIB}
        return choice(decided([run(1, asked=asked, executors=memory)], asked=asked), OVERHEAD).largest or 0.0

    assert overhead("0") == pytest.approx(1400)
    assert overhead("2g") == pytest.approx(500)


def test_executors_that_replaced_lost_ones_do_not_make_the_others_look_idle() -> None:
    busy = {"task_seconds": 700.0}
    lost = run(1, metrics=busy, executors={"number": 20, "lost": 16})
    assert choice(decided([lost]), Resource.EXECUTOR_INSTANCES).after == 4


@pytest.mark.parametrize(("earlier", "now"), TASKS.values(), ids=TASKS)
def test_more_tasks_at_a_time_get_the_memory_asked_for_again(
    earlier: dict[str, str], now: dict[str, str]
) -> None:
    memory = Resource.DRIVER_MEMORY if "spark.driver.memory" in now else HEAP

    def tuned(conf: dict[str, str]) -> list[dict[str, Any]]:
        had = {**conf, memory.spark_property: "1g"}
        return [run(number, asked=conf, settings=had, peak=600) for number in range(1, 4)]

    found = choice(decided(tuned(earlier), asked=now), memory)
    assert (found.after, found.rule) == (8192, "by_hand")
    assert found.why == (
        "it gets the 8192m asked for, as each process may run more tasks at a time than in the last run; the"
        " tuning goes on from there"
    )
    assert choice(decided(tuned(earlier), asked=earlier), memory).after <= 1024
    assert choice(decided(tuned(now), asked=earlier), memory).after <= 1024, "fewer need no more"


def test_definitions_of_one_name_with_other_threads_are_tuned_apart() -> None:
    confs = [{**LOCAL, "spark.master": f"local[{threads}]"} for threads in (2, 8)]
    runs, given = list[dict[str, Any]](), list[float]()
    for number in range(24):
        asked = confs[number % 2]
        after = choice(decided(runs, asked=asked), Resource.DRIVER_MEMORY).after
        settings = {**asked, "spark.driver.memory": f"{after:.0f}m"}
        runs.append(run(number, asked=asked, settings=settings, peak=500))
        given.append(after)
    assert max(given[-4:]) < 1024
