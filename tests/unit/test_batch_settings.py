"""The settings of a script for the tuning of its micro-batches."""

import pytest

from spark_runner.sql.compiler.compile import compile_script
from tests.unit.test_sql_check import places
from tests.unit.test_sql_settings import error

KAFKA = "CREATE TABLE t (value BIGINT) USING kafka OPTIONS (topic 't', bootstrap_servers 'localhost:9');"
OUT = "CREATE TABLE o USING json OPTIONS (path '/o'); INSERT INTO o SELECT value FROM t"
ON = "job.batch.tuning = on"


@pytest.mark.parametrize(
    ("settings", "plan"),
    [
        (ON, {}),
        ("JOB.Batch.Tuning = 'ON'", {}),
        (f"{ON}; SET job.batch.target = '30 seconds'", {"target_ms": 30_000}),
        (f"{ON}; SET job.batch.rows.min = 10; SET job.batch.rows.max = 500", {"least": 10, "most": 500}),
        (f"{ON}; SET job.batch.rows.min = 10; RESET job.batch.rows.min", {}),
        ("job.batch.tuning = off", None),
        ("job.batch.tuning = off; SET job.batch.target = '1 s'", None),
        (f"{ON}; RESET job.batch.tuning", None),
        ("job.trigger = '1 s'", None),
    ],
)
def test_the_settings_of_the_tuning_are_in_the_plan(settings: str, plan: dict[str, int] | None) -> None:
    script = f"SET job.mode = streaming; SET {settings}; {KAFKA} {OUT}"
    made = compile_script(script, file="s.sql", base_dir="/base", variables={})
    assert made.get("batch_tuning") == plan


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("job.batch.tuning = maybe", "'job.batch.tuning' is on or off"),
        ("job.batch.target = '10'", "it is a number and a unit, such as '10 seconds'"),
        ("job.batch.target = '1 ms'", "it is from 100 ms to 24 hours"),
        ("job.batch.rows.min = 0", "is a number of rows, from 1 to 999999999"),
        ("job.batch.rows.max = 1e3", "is a number of rows, from 1 to 999999999"),
    ],
)
def test_other_values_are_refused_at_the_value(setting: str, message: str) -> None:
    column, found = error(f"SET {setting}")
    assert column == len("SET " + setting.partition("= ")[0] + "= ") + 1
    assert message in found


def test_a_setting_without_effect_and_a_contradiction_are_refused() -> None:
    stream = f"{KAFKA} {OUT}"
    mode = "SET job.mode = 'streaming';\n"
    alone = places(f"{mode}SET job.batch.target = '1 s';\n{stream}")
    assert alone == [(2, 5, "'job.batch.target' has no effect without job.batch.tuning 'on'")]
    bounds = "SET job.batch.tuning = on; SET job.batch.rows.min = 9; SET job.batch.rows.max = 8;\n"
    (found,) = places(f"{mode}{bounds}{stream}")
    assert found[2] == "'job.batch.rows.max' is less than job.batch.rows.min, 9"
    other = places(f"SET job.mode = 'available-now';\nSET job.batch.tuning = on;\n{stream}")
    assert other == [
        (2, 5, "'job.batch.tuning' needs job.mode 'streaming', and this script has mode 'available-now'")
    ]


def test_a_script_without_a_topic_that_streams_has_nothing_to_tune() -> None:
    stream = f"CREATE TABLE t (value BIGINT) USING rate; {OUT}"
    found = places(f"SET job.mode = 'streaming';\nSET job.batch.tuning = on;\n{stream}")
    assert found == [(2, 5, "'job.batch.tuning' needs a stream of a table of connector 'kafka'")]
