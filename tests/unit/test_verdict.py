import json
from typing import Any

import pytest

from orchestrator.handlers.verdict import verdict_of_attempt, verdict_of_exit
from orchestrator.model.states import Status
from spark_runner.protocol.attempt import Attempt
from spark_runner.runners.base import Failure, RunState, Submission


def attempt(state: str = "started", **facts: Any) -> Attempt:
    document = {"run_key": "key", "attempt": 1, "state": state, "incarnation": "inc", **facts}
    return Attempt("/path", 1 if state == "started" else 2, document)


def ended(state: RunState = RunState.EXITED, code: int | None = None, **facts: Any) -> Submission:
    return Submission("key-1", "inc", state, exit_code=code, **facts)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("succeeded", Status.SUCCESS),
        ("failed", Status.ERROR_FAIL),
        ("lost", Status.ERROR_FAIL),
        ("closed", Status.ERROR_FAIL),
        ("killed", Status.KILL),
    ],
)
def test_an_ended_attempt_is_the_verdict(state: str, status: Status) -> None:
    assert verdict_of_attempt(attempt(state)).status is status


def test_an_open_attempt_has_no_verdict() -> None:
    with pytest.raises(ValueError, match="still open"):
        verdict_of_attempt(attempt())


@pytest.mark.parametrize(
    ("code", "status", "error_class", "recorded"),
    [
        (0, Status.ERROR_FAIL, "no_outcome", "failed"),
        (1, Status.ERROR_FAIL, "user", "failed"),
        (3, Status.ERROR_FAIL, "user", "failed"),
        (52, Status.ERROR_FAIL, "memory", "failed"),
        (69, Status.ERROR_FAIL, "lost", "lost"),
        (75, Status.ERROR_FAIL, "lost", "lost"),
        (137, Status.ERROR_FAIL, "infrastructure", "failed"),
        (143, Status.ERROR_FAIL, "infrastructure", "failed"),
        (255, Status.ERROR_FAIL, "infrastructure", "failed"),
    ],
)
def test_the_exit_of_the_driver_that_took_the_attempt_is_the_verdict_when_it_left_no_word(
    code: int, status: Status, error_class: str | None, recorded: str
) -> None:
    verdict, operation = verdict_of_exit(attempt(), ended(code=code))
    assert verdict.status is status
    assert (verdict.error.error_class if verdict.error else None) == error_class
    assert json.loads(operation.data)["state"] == recorded
    assert operation.version == 1  # refused if the driver was faster


@pytest.mark.parametrize("outcome", [None, {"state": "failed", "error": {"class": "user", "message": "no"}}])
@pytest.mark.parametrize(
    ("recorded", "is_kept"),
    [
        ("2026-01-01T01:00:00Z", True),
        ("2026-01-01T00:00:00Z", False),  # whole seconds: before the start
        ("2025-01-01T00:00:00Z", False),
        ("soon", False),
        ("", False),
    ],
)
def test_the_end_of_a_driver_is_when_it_ended_and_not_when_a_worker_saw_it(
    recorded: str, outcome: dict[str, Any] | None, *, is_kept: bool
) -> None:
    begun = attempt(started="2026-01-01T00:00:00.500Z")
    _, operation = verdict_of_exit(begun, ended(code=1, outcome=outcome, ended=recorded))
    written = json.loads(operation.data)["ended"]
    assert (written == recorded) is is_kept
    assert written > "2026-01-01T00:00:01"


@pytest.mark.parametrize("code", [None, 0, 143])
def test_a_driver_that_a_user_ended_on_its_cluster_is_killed(code: int | None) -> None:
    failure = Failure("killed", "Killed", "by user root")
    verdict, operation = verdict_of_exit(attempt(), ended(code=code, failure=failure))
    assert (verdict.status, verdict.error and verdict.error.error_class) == (Status.KILL, "killed")
    assert json.loads(operation.data)["state"] == "killed"
    assert verdict_of_attempt(attempt("killed")).status is Status.KILL


def test_a_driver_that_says_that_its_application_was_killed_is_believed() -> None:
    error = {"class": "killed", "message": "Master removed our application: KILLED"}
    verdict = verdict_of_attempt(attempt("failed", error=error))
    assert (verdict.status, verdict.error and verdict.error.error_class) == (Status.KILL, "killed")
    verdict, _ = verdict_of_exit(attempt(), ended(code=1, outcome={"state": "failed", "error": error}))
    assert verdict.status is Status.KILL


def test_a_driver_that_is_gone_without_an_exit_code_is_lost_never_a_success() -> None:
    verdict, operation = verdict_of_exit(attempt(), ended(RunState.GONE))
    assert verdict.error is not None
    assert verdict.error.error_class == "lost"
    assert json.loads(operation.data)["state"] == "lost"


def test_the_outcome_beside_the_logs_wins_over_the_exit_code() -> None:
    outcome: dict[str, Any] = {
        "state": "failed",
        "error": {"class": "memory", "message": "heap"},
        "tables": [],
    }
    verdict, operation = verdict_of_exit(attempt(), ended(code=1, outcome=outcome))
    assert verdict.error is not None
    assert (verdict.error.error_class, verdict.error.message) == ("memory", "heap")
    assert json.loads(operation.data)["recorded_by"] == "worker"
    outcome = {"state": "succeeded", "tables": [{"target": "t", "preview": [["row"]]}]}
    verdict, operation = verdict_of_exit(attempt(), ended(RunState.GONE, outcome=outcome))
    assert verdict.status is Status.SUCCESS
    assert b"row" not in operation.data
