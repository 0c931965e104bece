"""`orchestrator sql lint`: in this process, without Spark and ZooKeeper."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.app import run_app
from orchestrator.cli.sql.lint import Severity, of_error, shown
from spark_runner.sql.text.errors import SqlError

WRONG = """\
CREATE TABLE src USING csv OPTIONS (pth 'in');
INSERT INTO sr SELECT * FROM src
"""
UNUSED = "CREATE TABLE p USING print;\nCREATE VIEW v AS SELECT 1;\nINSERT INTO p SELECT 1\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the findings of `sql lint -o json`."""
    code = run_app(["sql", "lint", *arguments, "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_message_of_several_lines_is_shown_once() -> None:
    error = SqlError("no cast\nuse UNIX_DATE", file="s.sql", line=1, column=8, source_line="SELECT x")
    assert shown(of_error(error, Severity.ERROR)) == (
        "s.sql:1:8: error: no cast\nuse UNIX_DATE\n  1 | SELECT x\n    |        ^"
    )


def test_all_errors_of_all_files_are_shown_with_their_lines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text(WRONG)
    (folder / "b.sql").write_text("SELEC 1")
    assert run_app(["sql", "lint", "a.sql", "missing.sql", "b.sql"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[:6] == [
        "a.sql:1:37: error: unknown option 'pth' of connector 'csv'; did you mean 'path'?",
        "  1 | CREATE TABLE src USING csv OPTIONS (pth 'in');",
        "    |                                     ^",
        "a.sql:2:13: error: unknown table 'sr'; did you mean 'src'?",
        "  2 | INSERT INTO sr SELECT * FROM src",
        "    |             ^",
    ]
    assert out.splitlines()[6] == "missing.sql: error: cannot be read: No such file or directory"
    assert out.splitlines()[7].startswith("b.sql:1:1: error: 'SELEC' is not supported here; ")
    assert err == "3 files: 4 errors, 0 warnings\n"


def test_a_script_with_warnings_fails_only_when_strict(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text(UNUSED)
    unused = {"file": "a.sql", "line": 2, "column": 13, "severity": "warning"}
    expected = [{**unused, "message": "view 'v' is never used"}]
    assert found(capsys, "a.sql") == (0, expected)
    assert found(capsys, "a.sql", "--strict") == (1, expected)


def test_a_clean_script_has_no_findings_and_its_variables_may_be_set(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text("CREATE TABLE p USING print; INSERT INTO p SELECT '${day}'")
    assert found(capsys, "a.sql", "--set", "day=1") == (0, [])
    code, findings = found(capsys, "a.sql")
    assert (code, [each["column"] for each in findings]) == (1, [51])


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"script": {"text": WRONG}}, ("job.json#script", 1, 37)),
        ({"script": "a.sql"}, ("a.sql", 1, 37)),
        ({"script": {"text": WRONG}, "name": "a b"}, ("job.json", 0, 0)),
        ({"python": {"text": "pass"}}, ("job.json", 0, 0)),
    ],
)
def test_the_script_of_a_definition_is_checked_with_its_place(
    document: dict[str, Any],
    place: tuple[str, int, int],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "a.sql").write_text(WRONG)
    (folder / "job.json").write_text(json.dumps({"name": "job", **document}))
    code, findings = found(capsys, "job.json")
    assert code == 1
    assert (findings[0]["file"], findings[0]["line"], findings[0]["column"]) == place


def test_a_definition_that_is_no_document_is_shown_at_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "job.yaml").write_text("name: a\nscript: [\n")
    code, findings = found(capsys, "job.yaml")
    assert (code, findings[0]["file"], findings[0]["line"]) == (1, "job.yaml", 3)
    assert findings[0]["message"].startswith("not valid YAML or JSON")


@pytest.mark.parametrize(
    ("text", "message"), [(WRONG, "unknown option"), ("", "is empty"), ("\x00", "NUL"), ("\xff", "not UTF-8")]
)
def test_a_dash_is_a_script_on_standard_input(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("latin-1")), "utf-8"))
    code, findings = found(capsys, "-")
    assert (code, findings[0]["file"]) == (1, "<stdin>")
    assert message in findings[0]["message"]


def test_a_secret_in_a_script_is_a_warning_that_does_not_show_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text("CREATE TABLE p USING print; INSERT INTO p SELECT 1")
    code, findings = found(capsys, "a.sql", "--set", "password=hunter22secret")
    assert (code, findings[0]["severity"]) == (0, "warning")
    assert "variables.password" in findings[0]["message"]
    assert "hunter22secret" not in json.dumps(findings)


def test_a_control_character_of_a_name_is_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.sql").write_text("INSERT INTO `a\x1b[31mb` SELECT 1")
    assert run_app(["sql", "lint", "a.sql"]) == 1
    assert "unknown table 'a\\x1b[31mb'" in capsys.readouterr().out
