"""The document that a worker writes for a driver is read exactly as it was written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.errors import PlanError
from spark_runner.protocol.run_plan import (
    JarProgram,
    PlanOutline,
    Program,
    PythonProgram,
    RunPlan,
    SqlProgram,
    in_warm_server,
)
from tests.run_plans import run_plan

KEYS = ["run", "run_key", "attempt_path", "stop_path", "incarnation", "job", "lease_seconds", "zookeeper"]


@pytest.mark.parametrize(
    ("program", "key"),
    [
        (PythonProgram("job.py", "pass", ("a",)), "python"),
        (JarProgram("Main", ("a", "b")), "jar"),
        (SqlProgram({"steps": [], "file": "a.sql"}), "sql"),
    ],
)
def test_a_plan_is_read_as_it_was_written(tmp_path: Path, program: Program, key: str) -> None:
    plan = run_plan(program=program, directory="/jobs", secrets=("hidden",), zookeeper={"hosts": "h"})
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()), "utf-8")
    assert list(plan.to_json()) == [*KEYS, "directory", key, "secrets"]
    assert RunPlan.read(file) == plan


def test_the_warm_server_of_a_driver_comes_last() -> None:
    plan = run_plan()
    document = in_warm_server(plan.to_json(), "/runs/warm")
    assert list(document)[-1] == "warm"
    assert RunPlan.of(document) == replace(plan, warm="/runs/warm")
    assert RunPlan.of(document).to_json() == document


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": None}, "'run' is NoneType, expected str"),
        ({"lease_seconds": True}, "'lease_seconds' is bool, expected int or float"),
        ({"later": 1}, "it has the unknown keys 'later'"),
        ({"job": {}}, "its job has no 'id'"),
        ({"jar": {}}, "it has 2 programs, expected exactly one of python, jar, sql"),
        ({"python": {"file": "a"}}, "its program has no 'text'"),
        ({"secrets": [1]}, "'secrets' holds more than strings"),
    ],
)
def test_an_invalid_plan_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        RunPlan.of({**run_plan().to_json(), **changes})


@pytest.mark.parametrize("key", [*KEYS, "python"])
def test_a_missing_key_is_named(key: str) -> None:
    document = run_plan().to_json()
    del document[key]
    with pytest.raises(PlanError, match=key):
        RunPlan.of(document)


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text, "utf-8")
    with pytest.raises(PlanError, match="submit the job again"):
        RunPlan.read(file)


@pytest.mark.parametrize("document", [{}, {"job": []}, {"recycling": {}}, {"run_key": None}])
def test_the_outline_of_another_document_is_empty(document: dict[str, Any]) -> None:
    assert PlanOutline.of(document) == PlanOutline()
