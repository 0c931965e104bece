"""The water line of a job, from what its driver reports, and reports of workers."""

from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.model.waiting import Reason
from orchestrator.model.water import EMPTY, WaterReport, water_line


def progress(**pushes: object) -> dict[str, Any]:
    return {"phase": "INSERT", "pushes": pushes}


def push(line: object, **more: object) -> dict[str, object]:
    return {"tasks": 2, "stale": 0, "water_line": line, **more}


def test_the_fullest_push_counts() -> None:
    assert water_line(progress(a=push(0.2), b=push(0.9), c=push(0.5))) == (0.9, "b")


def test_a_buffer_that_was_made_smaller_than_what_it_holds_is_full() -> None:
    assert water_line(progress(a=push(7.5))) == (1.0, "a")


@pytest.mark.parametrize(("stale", "line"), [(0, 0.9), (1, 0.9), (2, 0.0), (3, 0.0)])
def test_a_push_counts_while_one_of_its_tasks_is_in_contact(stale: int, line: float) -> None:
    assert water_line(progress(a=push(0.9, stale=stale))).line == line


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"pushes": None},
        {"pushes": ["a"]},
        progress(),
        progress(a=None),
        progress(a={}),
        progress(a=push(None)),
        progress(a=push("0.9")),
        progress(a=push(True)),
        progress(a=push(-1)),
        progress(a=push(float("nan"))),
        progress(a=push(float("inf"))),
        progress(a=push(10**400)),
        progress(a=push({"line": 0.9})),
        progress(a=push(0.9, tasks=0)),
        progress(a=push(0.9, tasks="many")),
        progress(a={"water_line": 0.9}),
    ],
    ids=str,
)
def test_what_is_no_report_of_a_full_buffer_is_an_empty_one(document: dict[str, Any]) -> None:
    assert water_line(document) == EMPTY


def test_names_are_short_lines_and_further_pushes_are_left_out() -> None:
    assert water_line(progress(**{"a\n" + 500 * "x": push(0.9)})).push == "a " + 58 * "x"
    many: dict[str, object] = {f"p{number}": push(0.1) for number in range(1000)}
    assert water_line(progress(**many, last=push(0.9))).line == 0.1


def test_the_report_of_a_worker_is_one_sentence_for_operators() -> None:
    report = WaterReport(worker="w", job="invoices-7", push="orders", line=0.934, high_water=0.8, at="now")
    waiting = report.waiting("http")
    assert (waiting.reason, waiting.worker, waiting.at) == (Reason.HIGH_WATER, "w", "now")
    assert waiting.message == (
        "invoices-7 of pool http has filled its buffer for orders to 93.4 %, and high_water is 80 %; "
        "the next job starts below 60 %"
    )


@pytest.mark.parametrize(
    "wrong",
    [{"line": 1.1}, {"line": float("nan")}, {"line": "much"}, {"job": 201 * "x"}, {"worker": None}],
    ids=str,
)
def test_a_report_with_other_values_is_none(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"worker": "w", "job": "j", "push": "p", "line": 0.9, "high_water": 0.8}
    assert WaterReport.model_validate(right)
    with pytest.raises(ValidationError):
        WaterReport.model_validate({**right, **wrong})
