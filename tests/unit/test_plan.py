"""The plan of a job: compiled by its submitter and decoded by a worker."""

import ast
import json
from typing import Any

import pytest

from orchestrator.model import plan as plan_module
from orchestrator.model.definition import MAX_DEFINITION_BYTES, Definition, build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import MAX_PLAN_BYTES, compile_program, decode_plan, encode_plan, program_of
from orchestrator.schedules.runs import compile_registration, run_definition, run_plan
from queues.store.commit import MAX_MULTI_BYTES
from spark_runner.protocol.run_plan import PythonProgram, SqlProgram
from spark_runner.sql.compiler.steps import PLAN_VERSION
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from tests import bounded

SCRIPT = "CREATE TABLE shown USING print; INSERT INTO shown SELECT '${day}' AS day;"
SHAPE: dict[str, Any] = {
    "version": PLAN_VERSION,
    "names_files": False,
    "needs_own_jvm": False,
    "formats": [],
    "values": [],
    "steps": [],
}
TABLE = {"kind": "table", "name": "t", "connector": "csv", "options": {}}


def definition(**fields: Any) -> Definition:
    return build_definition({"name": "job", **fields}, "test")


def compiled(made: Definition) -> dict[str, Any]:
    plan = compile_program(made)
    assert plan is not None
    program = program_of(made, decode_plan(encode_plan(plan)))
    assert isinstance(program, SqlProgram)
    return program.to_json()


def texts(plan: dict[str, Any]) -> list[str]:
    source = ScriptSource(plan["file"], plan["source"])
    return [
        Passage.from_json(source, step["query"], plan["values"]).text
        for step in plan["steps"]
        if "query" in step
    ]


def test_a_plan_holds_neither_the_script_nor_a_value_twice() -> None:
    padding, value = "-- " + "p" * 10_000 + "\n", "v" * 10_000
    many = "INSERT INTO shown SELECT '${day}' AS day;" * 5
    made = definition(script=padding + SCRIPT + many, variables={"day": value})
    plan = compile_program(made)
    assert plan is not None
    assert len(encode_plan(plan)) < len(value) + 2_000
    assert texts(compiled(made)) == [f"SELECT '{value}' AS day"] * 6


def test_a_worker_parses_neither_script_nor_program(monkeypatch: pytest.MonkeyPatch) -> None:
    script, program = definition(script=SCRIPT, variables={"day": "d"}), definition(python="print(1)")
    plan = compile_program(script)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a text was parsed")

    monkeypatch.setattr(plan_module, "check_script", refuse)
    monkeypatch.setattr(ast, "parse", refuse)
    assert program_of(script, plan).to_json()["steps"]
    assert program_of(program, None) == PythonProgram("job.py", "print(1)")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"version": ' + b"[" * 100_000, "nested too deeply"),
        (b"{" + b'"a":' + b"9" * 5_000 + b"}", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[]", "expected a JSON object"),
        (b"{}", "has version None"),
        (json.dumps({**SHAPE, "version": 1}).encode(), "has version 1, this worker runs version"),
        (json.dumps({**SHAPE, "steps": "x"}).encode(), "has no 'steps'"),
        *(
            (json.dumps({**SHAPE, "steps": [{**TABLE, name: value}]}).encode(), f"a table without '{name}'")
            for name in ("name", "connector", "options")
            for value in (None, ["csv"])
        ),
        (json.dumps({**SHAPE, "values": None}).encode(), "has no 'values'"),
        (b" " * (MAX_PLAN_BYTES + 1), "the limit is"),
    ],
)
def test_a_plan_that_is_none_is_refused_in_words(data: bytes, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        decode_plan(data)


def test_a_script_without_a_plan_is_to_be_submitted_again() -> None:
    with pytest.raises(DefinitionError, match="submit the job again"):
        program_of(definition(script=SCRIPT), None)


def test_a_plan_that_is_too_large_is_refused_where_the_job_is_submitted() -> None:
    tables = "".join(f"CREATE TABLE {'t' * 200}{n} USING csv OPTIONS (path '/d{n}');" for n in range(900))
    with pytest.raises(
        SqlError, match=f"job.sql:1:1: the compiled script is .* the limit is {MAX_PLAN_BYTES:,}"
    ):
        compile_program(definition(script=tables + "CREATE TABLE p USING print; INSERT INTO p SELECT 1"))


def test_definition_plan_and_record_fit_into_one_request() -> None:
    assert MAX_DEFINITION_BYTES + MAX_PLAN_BYTES + 64 * 1024 < MAX_MULTI_BYTES < 1_000_000


@pytest.mark.parametrize("program", ["-" * 100_000 + "1", "(" * 100_000, "a" + ".b" * 100_000])
def test_a_program_that_is_nested_too_deeply_is_refused_in_words(program: str) -> None:
    found = bounded.outcome(lambda: compile_program(definition(python=program)))
    assert isinstance(found, DefinitionError)
    assert str(found).startswith("job.py")


def test_a_reference_to_a_secret_stays_one() -> None:
    made = definition(script=SCRIPT, variables={"day": "${env:HOME}/${secret:scope/key}"})
    assert compile_program(made) is not None
    assert texts(compiled(made)) == ["SELECT '${env:HOME}/${secret:scope/key}' AS day"]


def test_the_plan_of_a_run_has_its_fire_time_and_is_what_compiling_it_would_give() -> None:
    script = (
        "CREATE TABLE t USING csv OPTIONS (path '/d/${fire_time}'); CREATE VIEW `v${fire_time}` AS SELECT 1;"
        "INSERT INTO t SELECT '1970-01-01T00:00:00Z' AS zero, '${fire_time}' AS at"
    )
    made = definition(script=script, schedule={"every": "1h"})
    fire = 1_763_722_800_000
    assert run_plan(made, compile_registration(made), fire) == compile_program(run_definition(made, fire))


def test_a_fire_time_of_the_users_own_is_left_alone() -> None:
    made = definition(script=SCRIPT.replace("day}", "fire_time}"), schedule={"every": "1h"})
    made = made.model_copy(update={"variables": {"fire_time": "mine"}})
    plan = run_plan(made, compile_registration(made), 0)
    assert plan is not None
    assert plan["values"] == ["mine"]
