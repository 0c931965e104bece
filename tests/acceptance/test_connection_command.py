"""`connection set`, `list`, `show`, `test` and `remove` on the command line, and their use by scripts."""

import json
from pathlib import Path

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Shell
from tests.operators_support import Stage

SCRIPT = """\
CREATE TABLE src (a INT) WITH ('connection' = 'exports', 'path' = 'in', 'null-literal' = '-');
CREATE TABLE tgt (a INT) WITH ('cluster_name' = 'exports', 'path' = 'out');
INSERT INTO tgt SELECT * FROM src;
"""
SET = ("connection", "set", "exports", "csv", "delimiter=;", "null_value=${secret:exports/null_value}")


@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    """A shell at the root of the stage."""
    assert stage.queues.layout.root == shared_shell.environment["ORCHESTRATOR_ROOT"]
    return shared_shell


def test_a_connection_is_stored_listed_shown_and_removed(operator: Shell, stage: Stage) -> None:
    assert operator.type(*SET).code == 0
    (listed,) = operator.type("connection", "list", "-o", "json").json()
    assert (listed["name"], listed["connector"]) == ("exports", "csv")
    shown = operator.type("connection", "show", "exports")
    assert "${secret:exports/null_value}" in shown.stdout
    assert operator.type("connection", "set", "exports", "csv", "delimiter=,").code == 0
    (shown_json,) = operator.type("connection", "show", "exports", "-o", "json").json()
    assert shown_json["options"] == {"delimiter": ","}
    assert operator.type("connection", "remove", "exports", "--yes").code == 0
    assert_error(operator.type("connection", "show", "exports"), 4, "no connection has the name 'exports'")
    root = stage.queues.layout.root
    session = stage.queues.session
    entries = session.get_many([f"{root}/audit/{name}" for name in session.children(f"{root}/audit") or ()])
    events = [json.loads(found[0]) for found in entries if found is not None]
    made = [(event["act"]["action"], event["target"]) for event in events if event["kind"] == "connection"]
    assert sorted(made) == [("remove", "exports"), ("set", "exports"), ("set", "exports")]
    assert any(event.get("before", {}).get("options", {}).get("delimiter") == ";" for event in events)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x", "cvs"), "unknown connector 'cvs'; did you mean 'csv'?"),
        (
            ("x", "csv", "delimeter=;"),
            "unknown option 'delimeter' of connector 'csv'; did you mean 'delimiter'?",
        ),
        (("x", "csv", "header=perhaps"), "option 'header' of connector 'csv' cannot be 'perhaps'"),
        (
            ("x", "csv", "null_value=${secret:x}"),
            "is not a reference: write ${secret:scope/key}",
        ),
        (("x", "csv", "path=${env:HOME}"), "decides where the rows are"),
        (("x/y", "csv"), "'x/y' cannot name a connection"),
        (("x", "csv", "delimiter"), "is written OPTION=VALUE"),
        (
            ("x", "csv", "null_value=password=Q7tR2mP4x"),
            "write a reference such as 'null_value=${secret:x/null_value}'",
        ),
    ],
)
def test_a_connection_that_cannot_be_used_is_refused(
    operator: Shell, arguments: tuple[str, ...], words: str
) -> None:
    ended = operator.type("connection", "set", *arguments)
    assert_error(ended, 2, words)
    assert "Q7tR2mP4x" not in ended.stderr
    assert operator.type("connection", "list", "-o", "json").json() == []


def test_references_are_tested_with_the_settings_of_the_command(operator: Shell, tmp_path: Path) -> None:
    operator.type(*SET)
    ended = operator.type("connection", "test", "exports")
    assert ended.code == 1
    assert "there is no scope 'exports'" in " ".join(ended.stdout.split())
    (tmp_path / "null_value").write_text("Q7tR2mP4x\n")
    scope = json.dumps({"secrets": {"exports": {"folder": str(tmp_path)}}})
    ended = operator.type("connection", "test", "exports", ORCHESTRATOR_REFERENCES=scope)
    assert ended.code == 0, ended.stdout + ended.stderr
    assert "ok" in ended.stdout
    assert "Q7tR2mP4x" not in ended.stdout + ended.stderr


def test_the_plan_of_a_job_keeps_the_options_of_its_connection(operator: Shell, stage: Stage) -> None:
    operator.write("job.sql", SCRIPT)
    assert_error(
        operator.type("job", "submit", "job.sql"), 2, "job.sql:1:47: no connection has the name 'exports'"
    )
    operator.type(*SET)
    assert operator.type("job", "submit", "job.sql", "--id", "one").code == 0
    operator.type("connection", "set", "exports", "csv", "delimiter=,")
    found = stage.queues.session.get(f"{stage.queues.layout.record('one')}/plan")
    assert found is not None
    src, tgt, _ = json.loads(found[0])["steps"]
    assert [step["options"]["delimiter"] for step in (src, tgt)] == [";", ";"]
    assert src["options"]["null_value"] == "-"
    assert "references" not in src
    assert tgt["references"] == {"null_value": [{"kind": "secret", "name": "exports/null_value"}]}


def test_lint_looks_connections_up_only_with_a_cluster(operator: Shell) -> None:
    operator.write("job.sql", SCRIPT)
    ended = operator.type("sql", "lint", "job.sql")
    assert ended.code == 0
    assert "warning: table 'src' is not checked: connection 'exports' is in a cluster" in ended.stdout
    assert "--cluster" in ended.stdout
    assert operator.type("sql", "lint", "--cluster", "job.sql").code == 1
    operator.type(*SET)
    (operator.directory / "in").mkdir()
    ended = operator.type("sql", "lint", "--cluster", "job.sql")
    assert (ended.code, ended.stdout) == (0, "")
