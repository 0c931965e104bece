"""Fails each test in which a statement runs although lint finds an error of columns in it: a false alarm."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from orchestrator.sql.columns.check import column_errors
from spark_runner.sql.compiler import compile as compiler
from spark_runner.sql.compiler.compile import Check

_DECIDED = ("view", "insert", "query", "assert", "explain")  # Spark has analysed their texts


@pytest.fixture(autouse=True)
def _no_false_alarm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "spark" not in request.fixturenames:
        yield
        return
    from spark_runner.sql.execution.execution import _Execution  # noqa: PLC0415 - lazy: loads pyspark

    checks, ran = dict[str, Check](), list[tuple[str, int, int]]()
    check, step = compiler.check_script, _Execution.step

    def recorded_check(text: str, **named: Any) -> Check:
        checks[text] = check(text, **named)
        return checks[text]

    def recorded_step(self: Any, its: Mapping[str, Any]) -> None:
        step(self, its)
        if its["kind"] in _DECIDED:
            ran.append((self.plan["source"], its["line"], its["column"]))

    monkeypatch.setattr(compiler, "check_script", recorded_check)
    monkeypatch.setattr(_Execution, "step", recorded_step)
    yield
    alarms = [
        str(error)
        for text, found in checks.items()
        for error in column_errors(found)
        if (text, *_statement_of(found, error.line, error.column)) in ran
    ]
    assert not alarms, "these statements ran: " + "\n".join(alarms)


def _statement_of(found: Check, line: int, column: int) -> tuple[int, int]:
    return max(place for each in found.statements if (place := each.passage.position()) <= (line, column))
