"""docs/python-api.md: its programs run as they are written, and its table of errors is true."""

import re
from pathlib import Path

import pytest

import orchestrator
from orchestrator import Error, Status
from orchestrator.cli.exits import _CODES
from tests.jobs_support import ScriptedDeployment

PAGE = Path(orchestrator.__file__).parents[1] / "docs" / "python-api.md"
TEXT = PAGE.read_text("utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
ERRORS = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|.*\| (\d) \|$", TEXT, re.MULTILINE)
FILES = {
    "job.yaml": "name: job\npython: job.py\n",
    "job.py": "pass\n",
    "totals.sql": "CREATE TABLE t USING print;\nINSERT INTO t SELECT '${day}' AS day;\n",
}


def test_the_programs_of_the_page_run(
    scripted_deployment: ScriptedDeployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = scripted_deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", where.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", where.root)
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, "utf-8")
    scripted_deployment.worker()
    assert len(PROGRAMS) == 5
    names: dict[str, object] = {}
    for number, program in enumerate(PROGRAMS):
        exec(compile(program, f"{PAGE.name}, program {number}", "exec"), names)  # noqa: S102 - the purpose of this test
    printed = capsys.readouterr().out
    assert "1 SUCCESS\n" in printed
    assert "hello-1 SUCCESS 20" in printed
    assert "Definition: field 'name'" in printed
    assert "no item has the id 'no-such-job'" in printed
    listed = {job.id: job.status for job in scripted_deployment.client.list()}
    assert listed.pop("hello-1") is Status.SUCCESS
    assert sorted(listed.values()) == [Status.ACCEPT, Status.ACCEPT, Status.SUCCESS]


def test_the_table_has_each_public_error_with_its_exit_code() -> None:
    named = {name: int(code) for names, code in ERRORS for name in re.findall(r"\w+", names)}
    public = {name for name in orchestrator.__all__ if is_error(getattr(orchestrator, name))}
    assert set(named) == public
    for name, code in named.items():
        error = getattr(orchestrator, name)
        found = [exit_code for types, exit_code in _CODES if issubclass(error, types)]
        assert [*found, 1][0] == code, name


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Error)
