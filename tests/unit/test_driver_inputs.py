"""A driver whose input is missing fails before it starts Spark."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from spark_runner.driver.driver import _run_program
from spark_runner.driver.jvm import OwnJvm
from spark_runner.protocol.run_plan import PlannedJob, RunPlan, SqlProgram
from spark_runner.sql.compiler.compile import compile_script

SCRIPT = "CREATE TABLE a (id INT) USING csv OPTIONS (path 'none.csv');\nSELECT id FROM a"


class _Started(Exception):
    """Spark would be started now."""


class _NoJvm(OwnJvm):
    def session(self) -> NoReturn:
        raise _Started

    def gone(self) -> None:
        return None


class _Holder:
    streams: Any = None

    def report(self, _phase: str) -> None:
        return


def outcome_of(folder: Path) -> dict[str, Any]:
    script = compile_script(SCRIPT, file="s.sql", base_dir=str(folder), variables={})
    job = PlannedJob("job-1", "job", 1, "default", "client")
    plan = RunPlan("run-1", "run", "/a", "/s", "i", job, 60.0, {}, SqlProgram(script), str(folder))
    holder: Any = _Holder()
    ended, code = _run_program(plan, holder, _NoJvm(), {})
    assert code == 1
    error: dict[str, Any] = ended["error"]
    return error


def test_a_missing_input_is_the_error_of_the_job_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = outcome_of(tmp_path)
    assert (error["type"], error["class"]) == ("SqlError", "definition"), "no further attempt would find it"
    assert error["message"].startswith(f"s.sql:1:49: there is no file or folder '{tmp_path}/none.csv' on ")
    assert "traceback" not in error
    assert "none.csv" in capsys.readouterr().err
    (tmp_path / "none.csv").touch()
    assert outcome_of(tmp_path)["type"] == "_Started"
