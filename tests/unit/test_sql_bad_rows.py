import pytest

from spark_runner.sql.compiler.compile import check_script

INSERT = "INSERT INTO t SELECT a FROM i;"
BASE = "CREATE TABLE t (a INT) USING print; CREATE TABLE i (a INT) USING inline OPTIONS (rows '[[1]]');"


def errors(script: str) -> list[tuple[int, int, str]]:
    found = check_script(script, file="s.sql", base_dir="/base", variables={})
    return [(error.line, error.column, error.message) for error in found.errors]


@pytest.mark.parametrize(
    ("setting", "column", "message"),
    [
        ("job.error.limit.rows = -1", 28, "'job.error.limit.rows' is a number of rows"),
        ("job.error.limit.rows = many", 28, "'job.error.limit.rows' is a number of rows"),
        ("job.error.limit.percent = 101", 31, "'job.error.limit.percent' is a percentage from 0 to 100"),
        ("job.error.limit.row = 1", 5, "unknown setting 'job.error.limit.row'; did you mean"),
        ("job.quarantine = u", 22, "no table 'u' can take rows; declare it with CREATE TABLE"),
        ("job.quarantine = i", 22, "no table 'i' can take rows"),
        ("job.quarantine = t", 22, "table 't' has column 'a'; rows that do not fit have record, form"),
    ],
)
def test_a_wrong_setting_for_bad_rows_is_an_error_at_its_place(
    setting: str, column: int, message: str
) -> None:
    ((line, at, said),) = errors("\n".join((f"SET {setting};", BASE, INSERT)))
    assert (line, at) == (1, column)
    assert said.startswith(message)


def test_the_last_value_of_a_setting_holds_for_the_whole_script() -> None:
    script = f"SET job.error.limit.rows = 1;{BASE}{INSERT}SET job.error.limit.rows = 7;"
    found = check_script(script, file="s.sql", base_dir="/base", variables={})
    assert found.plan is not None
    assert found.plan["bad_rows"] == {"rows": 7, "percent": None}
    assert found.plan["version"] == 3
    assert found.plan["needs_own_jvm"]
    script += "RESET job.error.limit.rows;"
    reset = check_script(script, file="s.sql", base_dir="/base", variables={})
    assert reset.plan is not None
    assert "bad_rows" not in reset.plan
    assert reset.plan["version"] == 2


def test_a_table_for_bad_rows_is_written_and_used() -> None:
    taking = "SET job.quarantine = q; CREATE TABLE q (record STRING) USING print;"
    script = f"{taking}{BASE}{INSERT}"
    found = check_script(script, file="s.sql", base_dir="/base", variables={})
    assert found.plan is not None
    assert [step["written"] for step in found.plan["steps"] if step.get("name") == "q"] == [True]
    assert not [warning for warning in found.warnings if "'q'" in warning.message]
