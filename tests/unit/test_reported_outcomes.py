"""The parts of a driver's outcome, and of the error in its attempt, that a worker accepts."""

from typing import Any

import pytest

from orchestrator.handlers.verdict import reported_end, reported_error, verdict_of_attempt, verdict_of_exit
from orchestrator.model.states import Status
from queues.model.codec import decode
from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.runners.base import RunState, Submission

OTHERS: list[dict[str, Any]] = [
    {},
    {"state": "intent"},
    {"state": "started"},
    {"state": "closed"},
    {"state": "finest"},
    {"state": ["succeeded"]},
    {"state": "succeeded", "tables": [1]},
    {"state": "succeeded", "tables": {"a": 1}},
    {"state": "succeeded", "tables": 7},
    {"state": "succeeded", "exit_code": "0"},
    {"state": "succeeded", "application_id": {"a": 1}},
    {"state": "succeeded", "metrics": "x"},
    {"state": "succeeded", "streamed": [1]},
    {"state": "succeeded", "metrics": {"x": "A" * 300_000}},
    {"state": "succeeded", "metrics": {"x": "\ud800"}},
    {"state": "failed", "error": "words"},
]
ERRORS: list[object] = [
    {"class": 1},
    {"class": "user"},
    {"class": "x" * 100_000, "message": "m"},
    {"class": "a\nb", "message": "m"},
    {"message": ["m"]},
    {"error_class": {}, "message": "m"},
    ["m"],
    "m",
]


def started(**document: object) -> Attempt:
    return Attempt(
        "/jobs/a/attempt-1-key", 1, {"state": "started", "run_key": "key", "place": {}, **document}
    )


def ended(outcome: dict[str, Any] | None) -> Submission:
    return Submission("key-1", "i", RunState.EXITED, 0, outcome=outcome)


@pytest.mark.parametrize("outcome", OTHERS)
def test_an_outcome_that_no_driver_writes_is_ignored(outcome: dict[str, Any]) -> None:
    assert reported_end(outcome) is None
    verdict, operation = verdict_of_exit(started(), ended(outcome))
    assert (verdict.status, verdict.error and verdict.error.error_class) == (Status.ERROR_FAIL, "no_outcome")
    assert len(operation.data) < 2_000


def test_fields_that_a_driver_may_not_set_are_omitted() -> None:
    more = {"ended": "x", "recorded_by": "y", "run_key": "other", "attempt": 7, "login": "z", "place": 5}
    verdict, operation = verdict_of_exit(started(), ended({"state": "succeeded", "exit_code": 0, **more}))
    assert verdict.status is Status.SUCCESS
    written = decode(operation.data)
    assert {name: written.get(name) for name in more} == {
        **dict.fromkeys(more),
        "ended": written["ended"],
        "recorded_by": "worker",
        "run_key": "key",
        "place": {},
    }
    assert written["ended"] != "x"


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_that_cannot_be_read_is_an_error_all_the_same(error: object) -> None:
    verdict = verdict_of_attempt(started(state="failed", error=error))
    assert verdict.status is Status.ERROR_FAIL
    assert verdict.error is not None
    assert len(verdict.error.error_class) <= 200
    assert reported_error(error, AttemptState.FAILED) == verdict.error


def test_a_valid_outcome_of_a_driver_is_accepted() -> None:
    error = {"class": "memory", "type": "OutOfMemoryError", "message": "heap"}
    facts = {
        "exit_code": 1,
        "application_id": "app-1",
        "ui": "http://x",
        "metrics": {"rows": 1},
        "tables": [],
    }
    found = reported_end({"state": "failed", "error": error, **facts})
    assert found == (AttemptState.FAILED, {"error": error, **facts})
    assert reported_error(error, AttemptState.FAILED).error_class == "memory"
