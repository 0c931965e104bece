"""Limits whose default depends on the mode of a script."""

import pytest

from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.definition_parts import Retry, Timeout
from orchestrator.model.errors import DefinitionError
from orchestrator.model.job import JobState
from orchestrator.model.mode_limits import reset_after, run_limit, stall_limit
from orchestrator.model.plan import compile_program, mode_of, trigger_seconds_of

HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("mode", "run", "stable"),
    [
        ("", 2 * HOUR_S, 0),
        ("batch", 2 * HOUR_S, 0),
        ("available-now", 2 * HOUR_S, 0),
        ("streaming", 0, HOUR_S),
    ],
)
def test_the_defaults_of_each_mode(mode: str, run: float, stable: float) -> None:
    assert (run_limit(Timeout(), mode), reset_after(Retry(), mode)) == (run, stable)


@pytest.mark.parametrize("mode", ["", "available-now", "streaming"])
@pytest.mark.parametrize("value", [0, 5])
def test_a_value_of_the_definition_holds_in_each_mode(mode: str, value: float) -> None:
    timeout, retry = Timeout(run=value), Retry(reset_after=value)
    assert (run_limit(timeout, mode), reset_after(retry, mode)) == (value, value)


def test_a_stream_may_be_silent_between_two_triggers() -> None:
    assert stall_limit(Timeout(), 0.05) == 600.05
    assert stall_limit(Timeout(stall=0), 0.05) == 0


def definition(**fields: object) -> Definition:
    return build_definition({"name": "x", "script": "SELECT 1", **fields}, "test")


def test_limits_are_durations() -> None:
    found = definition(timeout={"run": "2h"}, retry={"reset_after": "30m"})
    assert (found.timeout.run, found.retry.reset_after) == (2 * HOUR_S, HOUR_S / 2)
    for fields in (
        {"timeout": {"run": -1}},
        {"retry": {"reset_after": "soon"}},
        {"retry": {"reset_after": -1}},
    ):
        with pytest.raises(DefinitionError):
            definition(**fields)


def test_the_record_of_a_job_has_the_mode_of_its_script() -> None:
    script = """
    SET job.mode = 'available-now';
    CREATE TABLE a (id BIGINT) USING json OPTIONS (path '/a');
    CREATE TABLE b (id BIGINT) USING json OPTIONS (path '/b');
    INSERT INTO b SELECT id FROM a;
    """
    plan = compile_program(definition(script=script))
    assert (mode_of(plan), mode_of(compile_program(definition())), mode_of(None)) == ("available-now", "", "")
    assert trigger_seconds_of({**(plan or {}), "trigger_ms": 500}) == 0.5
    assert trigger_seconds_of(None) == trigger_seconds_of({"trigger_ms": "x"}) == 0.0
    assert "mode" not in JobState.enqueued("x").to_payload()
