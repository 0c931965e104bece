import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.history.history import MAX_RING_BYTES, MAX_RUN_BYTES, MAX_RUNS, Ring, is_run, run_of
from orchestrator.history.key import Key
from orchestrator.model.definition import build_definition
from orchestrator.model.job import JobError
from queues.model.codec import encode
from spark_runner.protocol.attempt import Attempt

SPARK = {
    "master": "local[2]",
    "driver": {"memory": "1g"},
    "conf": {"spark.sql.shuffle.partitions": "7", "spark.app.name": "x"},
}
DEFINITION = build_definition({"name": "n" * 128, "python": "pass", "spark": SPARK}, "test")
TIMES = {"started": "2026-01-01T00:00:00.000Z", "ended": "2026-01-01T00:01:30.500Z"}

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


def attempt(**facts: Any) -> Attempt:
    document = {"run_key": "key", "attempt": 2, "state": "succeeded", "incarnation": "i", **TIMES, **facts}
    return Attempt("/path", 2, document)


def entry(error: JobError | None = None, **facts: Any) -> dict[str, Any]:
    return run_of(attempt(**facts), job_id="job", spark=DEFINITION.spark, error=error, key=Key("c0de", "-"))


@pytest.mark.parametrize("ended", ["2099-01-01T00:00:00Z", "zzz", None, 7])
def test_the_end_of_a_run_is_no_later_than_its_record_in_zookeeper(ended: object) -> None:
    written = replace(attempt(ended=ended), changed_ms=1_767_225_700_500)
    found = run_of(written, job_id="job", spark=DEFINITION.spark, error=None, key=Key("c0de", "-"))
    assert found["ended"] == "2026-01-01T00:01:40.500Z"
    usual = replace(attempt(), changed_ms=1_767_225_700_500)
    assert (
        run_of(usual, job_id="job", spark=DEFINITION.spark, error=None, key=Key("c0de", "-"))["ended"]
        == (TIMES["ended"])
    )


def test_a_run_says_how_it_ended_what_was_in_force_and_what_it_took() -> None:
    in_force = {"spark.driver.memory": "2g"}
    metrics = {"input_bytes": 17, "settings": in_force, "spill_disk_bytes": 0}
    assert entry(exit_code=0, application_id="local-1", metrics=metrics) == {
        "run": "key-2",
        "job": "job",
        "attempt": 2,
        "state": "succeeded",
        "class": None,
        "exit_code": 0,
        **TIMES,
        "seconds": 90.5,
        "application_id": "local-1",
        "input_bytes": 17,
        "settings": in_force,
        "asked": {"spark.driver.memory": "1g"},
        "code": "c0de",
        "parameters": "-",
        "metrics": {"input_bytes": 17, "spill_disk_bytes": 0},
    }


def test_a_run_whose_driver_reported_nothing_has_its_class_and_the_settings_of_the_definition() -> None:
    error = JobError(error_class="memory", type="CgroupOutOfMemory", message="x" * 5_000)
    found = entry(error, state="failed", exit_code=137)
    assert (found["class"], found["type"], len(found["message"])) == ("memory", "CgroupOutOfMemory", 300)
    assert found["settings"] == {
        "spark.master": "local[2]",
        "spark.submit.deployMode": "client",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "7",
    }
    assert found["metrics"] == {}
    assert entry(None, state="killed")["class"] == "killed"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, True),
        ({"state": "started"}, False),
        ({"state": "killed", "incarnation": ""}, False),  # cancelled before it began
        ({"state": "closed", "incarnation": "", "error": {"message": "no such jar"}}, True),
        ({"state": "closed", "incarnation": "", "error": {"message": "away"}, "passing": True}, False),
    ],
)
def test_attempts_that_count_as_runs(facts: dict[str, Any], expected: bool) -> None:
    assert is_run(attempt(**facts)) is expected


@given(anything, anything, anything)
def test_a_run_is_small_whatever_a_driver_has_written(metrics: Any, in_force: Any, code: Any) -> None:
    large = {"metrics": metrics, "settings": in_force, "filler": ["ä" * 100] * 100}
    for written in (metrics, large, {"settings": large}, {"input_bytes": large}):
        found = entry(
            JobError(error_class="user", message="\\" * 9_000, type="t" * 900),
            metrics=written,
            exit_code=code,
        )
        assert len(encode(found)) <= MAX_RUN_BYTES
        assert found["run"] == "key-2"


def run(number: int, **more: Any) -> dict[str, Any]:
    return {"run": f"run-{number}", "ended": f"{number:06}", **more}


@given(st.permutations(range(70)), st.integers(0, 69))
def test_a_ring_holds_the_latest_once_each_in_whatever_order_they_are_noted(
    order: list[int], again: int
) -> None:
    ring = Ring("name")
    for number in (*order, order[again]):
        ring = ring.with_run(run(number))
    assert [each["run"] for each in ring.runs] == [f"run-{number}" for number in range(70 - MAX_RUNS, 70)]
    assert Ring.decode("name", ring.encode()) == ring


def test_a_full_ring_of_the_largest_runs_fits_into_its_node() -> None:
    ring = Ring(DEFINITION.name)
    for number in range(60):
        ring = ring.with_run(run(number, filler="x" * (MAX_RUN_BYTES - 50)))
    assert len(ring.runs) == MAX_RUNS
    assert len(ring.encode()) < MAX_RING_BYTES
    for number in range(60, 80):  # of a writer with a higher limit
        ring = ring.with_run(run(number, filler="x" * 50_000))
    assert 0 < len(ring.runs) < MAX_RUNS
    assert len(ring.encode()) <= MAX_RING_BYTES


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", json.dumps({"runs": [1]}).encode()])
def test_bytes_of_another_kind_are_no_ring(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of its kinds
        Ring.decode("name", data)
