"""Built-in variables: marks in a plan, and their values for one attempt."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.definition import build_definition
from orchestrator.model.plan import compile_program
from orchestrator.schedules.runs import compile_registration, run_plan
from queues import check_id
from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.compiler.steps import PLAN_VERSION
from spark_runner.sql.execution.places import check_places, with_built_ins
from spark_runner.sql.text.built_ins import MARKS, values_of
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import MAX_PATH_CHARACTERS, ScriptSource

AT = datetime(2026, 1, 31, 4, 5, 6, 789_000, UTC)
VALUES = values_of("nightly-20260131T040506Z", 2, AT)
SHOWN = "CREATE TABLE shown USING print; INSERT INTO shown "


def compiled(text: str, **variables: str) -> dict[str, Any]:
    plan = compile_script(text, file="s.sql", base_dir="/base", variables=variables)
    made: dict[str, Any] = json.loads(json.dumps(plan))
    return made


def attempt(text: str, values: dict[str, str] = VALUES, **variables: str) -> dict[str, Any]:
    """The plan as a driver runs it."""
    return with_built_ins(compiled(text, **variables) | {"built_ins": values})


def query(plan: dict[str, Any]) -> Passage:
    source = ScriptSource(plan["file"], plan["source"])
    return Passage.from_json(source, plan["steps"][-1]["query"], plan["values"])


def test_each_variable_has_its_value() -> None:
    names = "SELECT '${ds}', '${ts}', '${fire_time}', '${run_id}', ${attempt}"
    assert query(attempt(SHOWN + names)).text == (
        "SELECT '2026-01-31', '2026-01-31T04:05:06Z', '2026-01-31T04:05:06Z', 'nightly-20260131T040506Z', 2"
    )


def test_the_date_and_time_are_those_of_utc() -> None:
    evening = datetime(2026, 1, 31, 23, 30, tzinfo=timezone(-timedelta(hours=5)))
    found = values_of("a", 1, evening)
    assert (found["ds"], found["ts"]) == ("2026-02-01", "2026-02-01T04:30:00Z")


def test_values_reach_options_messages_and_settings() -> None:
    plan = attempt(
        "SET spark.app.day = '${ds}';"
        "CREATE TABLE t USING csv OPTIONS (path 'out/ds=${ds}');"
        "ASSERT true, 'of ${run_id}'; INSERT INTO t SELECT 1 AS a"
    )
    setting, table, checked, _ = plan["steps"]
    assert setting["value"] == "2026-01-31"
    assert table["options"]["path"] == table["location"] == "/base/out/ds=2026-01-31"
    assert checked["message"] == "of nightly-20260131T040506Z"


def test_a_variable_of_the_definition_replaces_a_built_in() -> None:
    assert query(attempt(f"{SHOWN}SELECT '${{ds}}'", ds="2025-12-24")).text == "SELECT '2025-12-24'"


def test_a_built_in_has_no_use_for_a_default() -> None:
    assert query(attempt(f"{SHOWN}SELECT '${{ds:-today}}'")).text == "SELECT '2026-01-31'"


def test_a_position_behind_a_value_is_that_in_the_script() -> None:
    passage = query(attempt(f"{SHOWN}SELECT '${{run_id}}', oops"))
    offset = passage.text.index("oops")
    assert passage.error("here", offset).column == len(f"{SHOWN}SELECT '${{run_id}}', ") + 1


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (SHOWN + "SELECT ${ds}", 58, "the value of ${ds} is a text; put it in quotes: '${ds}'"),
        (SHOWN + "SELECT 1 - ${run_id:-x}", 62, "put it in quotes"),
        ("CREATE TABLE `t_${attempt}` USING print", 14, "`t_${attempt}` has no value yet"),
        ("CREATE TABLE t USING print OPTIONS (limit '${attempt}')", 43, "cannot be '${attempt}'"),
        (SHOWN + "SELECT '${dss}'", 59, "unknown variable 'dss'; did you mean 'ds'?"),
    ],
)
def test_a_use_that_cannot_work_is_an_error_that_names_the_variable(
    text: str, column: int, message: str
) -> None:
    error = check_script(text, file="s.sql", base_dir="/base", variables={}).errors[0]
    assert (error.column, message in error.message) == (column, True), error


def test_only_a_plan_with_built_ins_needs_a_new_driver() -> None:
    assert compiled(SHOWN + "SELECT '${ds}'")["version"] == PLAN_VERSION
    assert compiled(SHOWN + "SELECT '${ds}'", ds="2026-01-01")["version"] < PLAN_VERSION


def test_a_driver_without_the_values_names_the_variable_and_its_place() -> None:
    with pytest.raises(SqlError, match=r"s\.sql:1:59: the variable \$\{ds\} has no value here"):
        with_built_ins(compiled(SHOWN + "SELECT '${ds}'"))


def test_no_value_is_longer_than_the_text_that_the_limits_count() -> None:
    longest = values_of("r" * 128, 9_999_999_999, AT)
    assert {name: len(value) for name, value in longest.items()} == {
        name: len(mark) for name, mark in MARKS.items()
    }
    path = "p" * (MAX_PATH_CHARACTERS - 100) + "${run_id}"
    with pytest.raises(SqlError, match="too long"):
        compiled(f"CREATE TABLE t USING csv OPTIONS (path '{path}')")


@given(st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True).filter(lambda name: name not in {".", ".."}))
def test_the_id_of_any_job_stays_in_its_quotes(name: str) -> None:
    values = values_of(check_id(name), 1, AT)
    for opening, closing in (("'", "'"), ('"', '"'), ("r'", "'"), ("`", "`")):
        passage = query(attempt(f"{SHOWN}SELECT {opening}${{run_id}}{closing}, 1", values))
        assert [token.text for token in passage.tokens] == ["SELECT", f"{opening}{name}{closing}", ",", "1"]


TABLES = (
    "CREATE TABLE day (a INT) USING csv OPTIONS (path '/d/ds=2026-01-31');"
    "CREATE TABLE today (a INT) USING csv OPTIONS (path '/d/ds=${ds}');"
    "CREATE TABLE whole (a INT) USING csv OPTIONS (path '/w/${run_id}');"
    "CREATE TABLE below (a INT) USING csv OPTIONS (path '/w/nightly-20260131T040506Z/x');"
)


@pytest.mark.parametrize(
    ("inserts", "message"),
    [
        ("INSERT INTO today SELECT * FROM day", "reads 'day' from the path it writes to"),
        ("CREATE VIEW v AS SELECT * FROM day; INSERT OVERWRITE today SELECT * FROM v", "reads 'day'"),
        ("INSERT OVERWRITE whole SELECT 1", "would delete table 'below' in '/w/nightly-20260131T040506Z/x'"),
        (
            "BEGIN STATEMENT SET; INSERT INTO today SELECT 1; INSERT INTO below SELECT * FROM day; END",
            "reads 'day', and the INSERT of line 1 writes there",
        ),
    ],
)
def test_the_values_of_an_attempt_are_checked_to_leave_its_input(inserts: str, message: str) -> None:
    with pytest.raises(SqlError, match="refused") as caught:
        check_places(attempt(TABLES + inserts))
    assert message in caught.value.message
    other_day = values_of("other", 1, AT + timedelta(days=1))
    check_places(attempt(TABLES + inserts, other_day))


def test_one_plan_of_a_schedule_serves_all_its_runs() -> None:
    script = SHOWN + "SELECT '${ds}', '${fire_time}'"
    made = build_definition({"name": "job", "script": script, "schedule": {"every": "1h"}}, "test")
    plan = run_plan(made, compile_registration(made), int(AT.timestamp()) * 1000)
    assert plan is not None
    text = {"file": "job.sql", "source": script}
    found = query(with_built_ins({**plan, **text, "built_ins": VALUES}))
    assert found.text == "SELECT '2026-01-31', '2026-01-31T04:05:06Z'"
    once = build_definition({"name": "job", "script": script}, "test")
    assert compile_program(once) is not None
