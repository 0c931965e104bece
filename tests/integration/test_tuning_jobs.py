"""Resources of attempts on a real ZooKeeper: which the driver gets, after which runs, and in which mode."""

from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from orchestrator.history.history import History
from orchestrator.model.states import Status
from orchestrator.model.tuning import TuningMode
from queues.session import Session
from tests.jobs_support import Deployment, ScriptedDeployment
from tests.tuning_support import (
    HEAP,
    NAME,
    OVERHEAD,
    heap_of,
    measures,
    run_to_end,
    runs_out,
    submitted,
    tuned_job,
    tuning_of,
    tuning_path,
    version_of,
    with_past_run,
)
from tests.waiting import wait_until

LONG = "x" * 100_000


def repr_of(value: object) -> str:
    return repr(value)[:20]


@pytest.fixture
def deployment(scripted_deployment: ScriptedDeployment) -> Deployment:
    return scripted_deployment


@pytest.fixture
def warnings() -> Any:
    """The messages of warnings and errors that are logged during the test."""
    found = list[str]()
    sink = logger.add(lambda message: found.append(str(message.record["message"])), level="WARNING")
    yield found
    logger.remove(sink)


# ---------------------------------------------------------------------- modes
def test_in_mode_apply_the_next_drivers_get_less_memory_and_the_history_says_so(
    deployment: Deployment,
) -> None:
    deployment.worker()
    jobs = [run_to_end(deployment, tuned_job(measures())) for _ in range(3)]
    heaps = [heap_of(deployment, each) for each in jobs]
    assert heaps[0] == 4096
    assert heaps[0] > heaps[1] > heaps[2] >= 512
    assert submitted(deployment, jobs[1])[OVERHEAD] == "384m", "a smaller heap takes none of it"
    runs = deployment.client.history(NAME)
    assert [run["settings"][HEAP] for run in runs] == ["4g", f"{heaps[1]}m", f"{heaps[2]}m"]
    assert {run["asked"][HEAP] for run in runs} == {"4g"}
    views = [deployment.client.get(each) for each in jobs]
    assert views[0].tuned is None
    assert (views[2].tuned or {})[HEAP] == f"{heaps[2]}m"


def test_in_mode_suggest_every_driver_gets_what_was_asked_for_and_the_suggestion_is_stored(
    deployment: Deployment,
) -> None:
    deployment.worker()
    jobs = [run_to_end(deployment, tuned_job(measures(), "suggest")) for _ in range(2)]
    assert [submitted(deployment, each)[HEAP] for each in jobs] == ["4g", "4g"]
    assert all(OVERHEAD not in submitted(deployment, each) for each in jobs)
    (last,) = tuning_of(deployment).decisions
    assert (last.run, last.job, last.runs) == ("", jobs[1], 2), "it replaces the first, which said the same"
    assert last.choices["driver.memory"]["rule"] == "shrink"
    assert (last.mode, last.mode_from) == ("suggest", "definition")


def test_a_decision_says_which_mode_was_in_force_and_who_had_set_it(
    deployment: Deployment,
) -> None:
    records = list[str]()
    sink = logger.add(lambda message: records.append(message.record["message"]), level="INFO")
    deployment.worker()
    run_to_end(deployment, tuned_job(measures(), ""))
    (last,) = tuning_of(deployment).decisions
    assert (last.mode, last.mode_from) == ("suggest", "default")
    suggested = f"tuning suggests for the next run of {NAME}: driver.memory: it falls"
    assert any(suggested in each for each in records)
    deployment.client.tunings.set_mode(NAME, TuningMode.APPLY)
    run_to_end(deployment, tuned_job(measures(), ""))
    last = tuning_of(deployment).decisions[-1]
    assert (last.mode, last.mode_from) == ("apply", "operator")
    logger.remove(sink)
    assert any(f"resources of run {last.run}: driver.memory: it falls" in each for each in records)


def test_in_mode_off_nothing_is_written_and_a_node_is_read_once_at_start_and_at_end(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.worker()
    path = tuning_path(deployment)
    assert submitted(deployment, run_to_end(deployment, tuned_job(measures(), "off")))[HEAP] == "4g"
    assert version_of(deployment.session(), path) is None
    deployment.client.tunings.set_mode(NAME, TuningMode.OFF)
    read, get = list[str](), Session.get

    def counted(session: Session, path: str, *more: Any, **named: Any) -> Any:
        read.append(path)
        return get(session, path, *more, **named)

    monkeypatch.setattr(Session, "get", counted)
    assert submitted(deployment, run_to_end(deployment, tuned_job(measures())))[HEAP] == "4g"
    assert read.count(path) == 2
    assert version_of(deployment.session(), path) == 0


def test_the_mode_of_an_operator_wins_from_the_next_attempt_on(deployment: Deployment) -> None:
    deployment.worker()
    run_to_end(deployment, tuned_job(measures(), "off"))
    for mode, gets_less in ((TuningMode.APPLY, True), (TuningMode.OFF, False)):
        deployment.client.tunings.set_mode(NAME, mode)
        job_id = run_to_end(deployment, tuned_job(measures(), "suggest"))
        assert (heap_of(deployment, job_id) < 4096) is gets_less


# ---------------------------------------------------------------------- out of memory
@pytest.mark.parametrize("mode", ["suggest", "apply"])
def test_the_attempt_after_one_out_of_memory_has_half_as_much_again(
    deployment: Deployment, mode: str
) -> None:
    deployment.worker()
    job_id = run_to_end(deployment, tuned_job(runs_out(), mode))
    assert deployment.client.get(job_id).status is Status.SUCCESS
    assert [heap_of(deployment, job_id, number) for number in (1, 2)] == [4096, 6144]
    assert submitted(deployment, job_id, 2)[OVERHEAD] == "410m"
    decisions = [each for each in tuning_of(deployment).decisions if each.run.endswith("-2")]
    assert [each.choices["driver.memory"]["rule"] for each in decisions] == ["short"]


def test_in_mode_off_the_attempt_after_one_out_of_memory_has_the_same(deployment: Deployment) -> None:
    deployment.worker()
    job_id = run_to_end(deployment, tuned_job(runs_out(), "off"))
    assert [heap_of(deployment, job_id, number) for number in (1, 2)] == [4096, 4096]


@pytest.mark.parametrize("mode", ["suggest", "apply"])
def test_the_growth_ends_at_four_times_what_was_asked_for(deployment: Deployment, mode: str) -> None:
    deployment.worker()
    retry = {"attempts": 7, "delay": "0s"}
    job_id = run_to_end(deployment, tuned_job(runs_out(attempts=6), mode, retry=retry))
    heaps = [heap_of(deployment, job_id, number) for number in range(1, 8)]
    assert heaps == [4096, 6144, 9216, 13824, 16384, 16384, 16384]


@pytest.mark.parametrize("mode", ["suggest", "apply"])
@pytest.mark.parametrize("has_history", [True, False])
def test_an_attempt_after_another_kind_of_failure_keeps_what_one_out_of_memory_got(
    deployment: Deployment, mode: str, *, has_history: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_history:
        monkeypatch.setattr(History, "record", lambda *_: None)
    deployment.worker()
    program = "if attempt == 1: run_out('driver.heap')\nif attempt < 4: fail('otherwise')\n" + measures()
    job_id = run_to_end(deployment, tuned_job(program, mode))
    assert [heap_of(deployment, job_id, number) for number in (1, 2, 3, 4)] == [4096, 6144, 6144, 6144]


@pytest.mark.parametrize("mode", ["suggest", "apply"])
def test_what_is_beside_the_heap_grows_on_its_own(deployment: Deployment, mode: str) -> None:
    deployment.worker()
    job_id = run_to_end(deployment, tuned_job(runs_out("driver.container"), mode))
    assert heap_of(deployment, job_id, 2) == 4096
    assert submitted(deployment, job_id, 2)[OVERHEAD] == "640m", "410m and half as much, in steps of 64m"


@pytest.mark.parametrize("short_of", ["", "driver", "driver.soul", LONG, 7, ["driver.heap"], {}], ids=repr_of)
def test_what_no_driver_says_counts_as_the_heap(deployment: Deployment, short_of: object) -> None:
    deployment.worker()
    job_id = run_to_end(deployment, tuned_job(runs_out(short_of), "suggest"))
    detail = deployment.client.detail(job_id)
    assert detail.job.status is Status.SUCCESS
    assert [attempt["error"]["class"] for attempt in detail.attempts[:1]] == ["memory"]
    assert heap_of(deployment, job_id, 2) == 6144


def test_the_error_of_a_job_names_no_more_than_what_a_driver_can_be_short_of(deployment: Deployment) -> None:
    deployment.worker()
    retry = {"attempts": 1}
    for short_of, kept in ((LONG, None), (7, None), ("executor.heap", "executor.heap")):
        job_id = run_to_end(deployment, tuned_job(runs_out(short_of), retry=retry))
        error = deployment.client.get(job_id).error
        assert error is not None
        assert (error.error_class, error.short_of) == ("memory", kept)


@pytest.mark.parametrize("mode", ["suggest", "apply"])
def test_one_shortage_after_another_adds_to_what_the_first_one_brought(
    deployment: Deployment, mode: str
) -> None:
    deployment.worker()
    program = "if attempt < 3: run_out('driver.heap' if attempt == 1 else 'driver.overhead')\n" + measures()
    job_id = run_to_end(deployment, tuned_job(program, mode))
    given = submitted(deployment, job_id, 3)
    assert (given[HEAP], given[OVERHEAD]) == ("6144m", "640m")


def test_what_operators_have_set_counts_in_modes_suggest_and_apply(deployment: Deployment) -> None:
    deployment.worker()
    run_to_end(deployment, tuned_job(measures(), "off"))
    deployment.client.tunings.cap(NAME, {"driver.memory": "5g"})
    capped = run_to_end(deployment, tuned_job(runs_out(), "suggest"))
    assert [heap_of(deployment, capped, number) for number in (1, 2)] == [4096, 5120]
    deployment.client.tunings.cap(NAME, {"driver.memory": "3g"})
    capped = run_to_end(deployment, tuned_job(measures(), "suggest"))
    assert heap_of(deployment, capped) == 3072, "also a definition that asks for more gets no more"
    deployment.client.tunings.pin(NAME, {"driver.memory": "2g"})
    for mode, heap in (("suggest", 2048), ("apply", 2048), ("off", 4096)):
        job_id = run_to_end(deployment, tuned_job(runs_out(), mode))
        assert [heap_of(deployment, job_id, number) for number in (1, 2)] == [heap, heap]


def test_a_retry_in_mode_suggest_keeps_nothing_of_what_mode_apply_has_saved(
    deployment: Deployment, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job = tuned_job(f"if attempt == 1: until({str(go)!r}); fail('otherwise')\n" + measures())
    with_past_run(deployment, job)
    deployment.worker()
    job_id = deployment.client.submit(job).id
    wait_until(lambda: deployment.state(job_id).tuned, 20, "its first attempt has less")
    deployment.client.tunings.set_mode(NAME, TuningMode.SUGGEST)
    go.touch()
    deployment.wait(job_id)
    assert heap_of(deployment, job_id, 1) < 4096
    assert heap_of(deployment, job_id, 2) == 4096
