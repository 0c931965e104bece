"""Streams that run for long: their limits, their failures, and an entry in the history for each full hour."""

from typing import Any

import pytest

from orchestrator.model.errors import HistoryNotFound
from orchestrator.model.states import Status
from spark_runner.protocol.attempt import AttemptState
from tests.streams_support import WAIT_S, Streams
from tests.waiting import wait_until

HOUR_S = 1.0  # of the workers of these tests


# ---------------------------------------------------------------------- limits
def test_a_stream_runs_beyond_the_limit_of_other_jobs_and_a_limit_of_its_own_holds(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.model.mode_limits._RUN_SECONDS", 1.0)
    streams.worker(slots=3)
    stream, drains = streams.submit(), streams.submit(name="drains", mode="available-now")
    limited = streams.submit(name="limited", timeout={"run": 1})
    for ended in (drains, limited):
        detail = streams.deployment.wait(ended)
        assert detail.job.error is not None
        assert (detail.job.status, detail.job.error.type) == (Status.ERROR_FAIL, "RunTimeout")
    assert streams.attempt(stream).state is AttemptState.STARTED
    streams.client.kill(stream, graceful=True)
    assert streams.deployment.wait(stream).job.status is Status.SUCCESS


def test_a_stream_without_rows_makes_progress_while_its_triggers_run(streams: Streams) -> None:
    streams.worker()
    hangs = streams.change("hangs")
    streams.change("idle")
    job_id = streams.submit(timeout={"stall": "3s"})

    def status() -> Status:
        return streams.client.get(job_id).status

    wait_until(lambda: status() is Status.RUNNING_WARN, WAIT_S, "a trigger that does not end is reported")
    hangs.unlink()
    wait_until(lambda: status() is Status.RUNNING, WAIT_S, "the next trigger withdraws the warning")
    seen = [streams.progress(job_id)["streams"]["sold"]["at"]]
    warned = list[Status]()

    def goes_on() -> bool:
        warned.extend({status()} - {Status.RUNNING})
        seen.append(streams.progress(job_id)["streams"]["sold"]["at"])
        return len(set(seen)) > 3  # progress is shown every two seconds: that takes longer than the limit

    wait_until(goes_on, WAIT_S, "triggers without rows are shown")
    assert warned == []
    assert streams.progress(job_id)["streams"]["sold"]["total_rows"] == 0
    streams.client.kill(job_id)
    streams.deployment.wait(job_id)


def test_the_time_between_two_triggers_is_no_stall(streams: Streams) -> None:
    streams.worker()
    streams.change("hangs")
    stalled = streams.submit(timeout={"stall": "1s"})
    waits = streams.submit(name="waits", timeout={"stall": "1s"}, trigger_ms=3_600_000)
    wait_until(lambda: streams.is_started(waits), WAIT_S, "it runs")
    wait_until(
        lambda: streams.client.get(stalled).status is Status.RUNNING_WARN, WAIT_S, "the other one is reported"
    )
    assert streams.client.get(waits).status is Status.RUNNING
    for job_id in (stalled, waits):
        streams.client.kill(job_id)
        streams.deployment.wait(job_id)


# ---------------------------------------------------------------------- failures
def fail_now(streams: Streams, job_id: str, number: int) -> None:
    """Let this attempt fail once it runs."""
    wait_until(lambda: streams.client.get(job_id).attempt == number, WAIT_S, f"attempt {number} is made")
    wait_until(lambda: streams.is_started(job_id), WAIT_S, "it runs")
    file = streams.change("fails now")
    wait_until(lambda: not file.exists(), WAIT_S, "it fails")


@pytest.mark.parametrize(("stable", "expected"), [("1ms", 1), ("1h", 2)])
def test_failures_after_a_stable_time_are_the_first_again(
    streams: Streams, stable: str, expected: int
) -> None:
    streams.worker()
    job_id = streams.submit(retry={"attempts": 3, "delay": "10ms", "reset_after": stable})
    for number in (1, 2):
        fail_now(streams, job_id, number)
    wait_until(lambda: streams.client.get(job_id).attempt == 3, WAIT_S, "the third attempt is made")
    assert streams.client.get(job_id).failures == expected
    fail_now(streams, job_id, 3)
    if expected == 1:
        fail_now(streams, job_id, 4)
        streams.client.kill(job_id)
    detail = streams.deployment.wait(job_id)
    assert detail.job.status is (Status.ERROR_FAIL if expected == 2 else detail.job.status)
    assert detail.job.attempt >= (3 if expected == 2 else 4)


# ---------------------------------------------------------------------- history
def entries(streams: Streams) -> list[dict[str, Any]]:
    try:
        return [dict(run) for run in streams.client.history("stream")]
    except HistoryNotFound:
        return []


def hours(streams: Streams) -> list[int]:
    return [run["hour"] for run in entries(streams) if "hour" in run]


def test_each_full_hour_of_a_stream_is_in_the_history_once_and_the_run_has_the_rest(streams: Streams) -> None:
    first = streams.worker(hour_seconds=HOUR_S)
    job_id = streams.submit()
    wait_until(lambda: len(hours(streams)) >= 2, WAIT_S, "two hours are recorded")
    first.drain()
    streams.worker(hour_seconds=HOUR_S)
    before = max(hours(streams))
    wait_until(lambda: max(hours(streams)) > before, WAIT_S, "the next worker records the next hour")
    streams.client.kill(job_id, graceful=True)
    streams.deployment.wait(job_id)
    total = streams.attempt(job_id).document["streamed"]
    found = entries(streams)
    recorded = hours(streams)
    assert recorded == sorted(set(recorded))
    assert {(run["run"], run["job"], run["attempt"]) for run in found} == {
        (streams.attempt(job_id).run, job_id, 1)
    }
    assert [run["state"] for run in found] == ["running"] * len(recorded) + ["succeeded"]
    assert sum(run["rows"] for run in found) == total["rows"] == found[-1]["total_rows"]
    assert sum(run["batches"] for run in found) == total["batches"] == found[-1]["total_batches"]
    assert found[0]["metrics"] == {"driver": {"heap_live_peak_bytes": 1 << 20}}
    assert found[0]["settings"] == {"spark.driver.memory": "1g"}
    assert len({(run["code"], run["parameters"]) for run in found}) == 1
    assert [run["started"] for run in found[1:-1]] == [run["ended"] for run in found[:-2]]
    assert found[-1]["seconds"] > sum(run["seconds"] for run in found[:-1]) - HOUR_S  # of the whole run


def test_an_attempt_that_fails_has_its_rest_in_the_history_too(streams: Streams) -> None:
    streams.worker(hour_seconds=HOUR_S)
    job_id = streams.submit(retry={"attempts": 2, "delay": "10ms"})
    wait_until(lambda: hours(streams), WAIT_S, "an hour is recorded")
    fail_now(streams, job_id, 1)
    wait_until(lambda: streams.client.get(job_id).attempt == 2, WAIT_S, "it is retried")
    streams.client.kill(job_id)
    streams.deployment.wait(job_id)
    run = next(run for run in entries(streams) if run["state"] == "failed")
    assert (
        run["rows"]
        + sum(each["rows"] for each in entries(streams) if "hour" in each and each["attempt"] == 1)
        == (run["total_rows"])
    )


def test_jobs_without_micro_batches_have_no_hours(streams: Streams) -> None:
    streams.worker(hour_seconds=0.1)
    job_id = streams.submit(mode="")
    streams.wait_for_batch(job_id)
    streams.client.kill(job_id)
    streams.deployment.wait(job_id)
    assert [run.get("hour") for run in entries(streams)] == [None]
