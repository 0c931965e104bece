"""Scripts and definitions that are refused with exit code 2, before anything is enqueued or started."""

from pathlib import Path

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Shell

# Both read the user's file in the same way and refuse it without a server.
BOTH = pytest.mark.parametrize("command", [["run"], ["job", "submit"]], ids=["run", "submit"])

SYNTAX_ERROR = """\
CREATE TABLE pets (name STRING) WITH ('connector' = 'inline', 'rows' = '[["cat"]]');
CREATE TABLE walkers WITH ('connector' = 'print');
INSERT INTO walkers
  SELEC name FROM pets;
"""


@pytest.fixture(autouse=True)
def nothing_is_begun(shell: Shell) -> None:
    """A refused command creates nothing, not even a state directory."""
    shell.environment["ORCHESTRATOR_STATE_DIR"] = str(shell.write("file", "") / "state")


@BOTH
def test_script_missing(shell: Shell, command: list[str]) -> None:
    for name in ("none.sql", "none.py", "none.yaml"):
        assert_error(shell.type_quickly(*command, name), 2, f"{name}: cannot be read: No such file")


@BOTH
def test_script_is_a_directory(shell: Shell, command: list[str]) -> None:
    (shell.directory / "folder.sql").mkdir()
    assert_error(shell.type_quickly(*command, "folder.sql"), 2, "folder.sql: cannot be read: Is a directory")


@BOTH
def test_script_is_not_text(shell: Shell, command: list[str]) -> None:
    (shell.directory / "latin.sql").write_bytes("-- žluťoučký\n".encode("iso-8859-2"))
    assert_error(shell.type_quickly(*command, "latin.sql"), 2, "latin.sql: is not UTF-8 text", "at byte 3")


@BOTH
def test_script_of_an_unknown_kind(shell: Shell, command: list[str]) -> None:
    shell.write("job.txt", "SELECT 1\n")
    assert_error(shell.type_quickly(*command, "job.txt"), 2, "job.txt: unknown file type '.txt'", ".sql, .py")


@BOTH
def test_script_that_is_empty(shell: Shell, command: list[str]) -> None:
    shell.write("empty.sql", "")
    assert_error(shell.type_quickly(*command, "empty.sql"), 2, "empty.sql")


@BOTH
def test_syntax_error_in_sql(shell: Shell, command: list[str]) -> None:
    shell.write("pets.sql", SYNTAX_ERROR)
    ended = shell.type_quickly(*command, "pets.sql")
    assert_error(ended, 2, "pets.sql:4:3: ", "4 |   SELEC name FROM pets;")
    assert ended.stderr.endswith("\n    |   ^\n"), "the position is marked"


@BOTH
def test_statement_without_its_end(shell: Shell, command: list[str]) -> None:
    shell.write("pets.sql", "CREATE TABLE pets USING print\nINSERT INTO pets SELECT 1 AS a;\n")
    ended = shell.type_quickly(*command, "pets.sql")
    assert_error(ended, 2, "pets.sql:1:30: missing ';' before INSERT of line 2")
    assert ended.stderr.count("pets.sql:") == 1, "it causes no further errors"


@BOTH
def test_slip_in_a_setting(shell: Shell, command: list[str]) -> None:
    shell.write("pets.sql", "SET spark.sql.shufle.partitions = 4;\nSELECT 1;\n")
    wanted = "pets.sql:1:5: Spark has no setting 'spark.sql.shufle.partitions'; did you mean"
    assert_error(shell.type_quickly(*command, "pets.sql"), 2, wanted, "'spark.sql.shuffle.partitions'?")


def test_missing_input(shell: Shell) -> None:
    shell.write("orders.csv", "id\n1\n")
    shell.write(
        "pets.sql", "CREATE TABLE pets USING csv OPTIONS (\n  path 'ordres.csv');\nSELECT * FROM pets;\n"
    )
    shell.environment["JAVA_HOME"] = "/no/java"  # what would start Spark or ZooKeeper fails in another way
    ended = shell.type_quickly("run", "pets.sql")
    assert_error(
        ended, 2, "pets.sql:2:8: there is no file or folder", "ordres.csv'; did you mean 'orders.csv'?"
    )


@BOTH
def test_syntax_error_in_python(shell: Shell, command: list[str]) -> None:
    shell.write("broken.py", "print('a')\nif True print('b')\n")
    assert_error(
        shell.type_quickly(*command, "broken.py"), 2, "broken.py:2:9: invalid syntax", "if True print('b')"
    )


@BOTH
def test_unknown_option_of_a_connector(shell: Shell, command: list[str]) -> None:
    shell.write("pets.sql", "\nCREATE TABLE pets USING csv OPTIONS (\n  path 'pets', heder 'true');\n")
    assert_error(
        shell.type_quickly(*command, "pets.sql"), 2, "pets.sql:3:16: unknown option 'heder'", "'header'"
    )


@BOTH
def test_variable_that_is_not_set(shell: Shell, command: list[str]) -> None:
    shell.write("pets.sql", "SET spark.sql.shuffle.partitions = ${partitions};\n")
    assert_error(shell.type_quickly(*command, "pets.sql"), 2, "pets.sql:1:36: ", "partitions")


@BOTH
@pytest.mark.parametrize("bad", ["least", "=1", ""])
def test_bad_set(shell: Shell, command: list[str], bad: str) -> None:
    shell.write("pets.sql", "SET spark.a = 1;\n")
    assert_error(
        shell.type_quickly(*command, "pets.sql", "--set", bad), 2, f"--set {bad!r}: write NAME=VALUE"
    )


@BOTH
@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ("name: a\nscrpt: a.sql\n", "unknown field 'scrpt'; did you mean 'script'?"),
        (
            "name: a\npython: {text: print()}\nretry: {atempts: 2}\n",
            "'retry.atempts'; did you mean 'attempts'?",
        ),
        ("python: {text: print()}\n", "field 'name' is missing"),
        ("name: a b\npython: {text: print()}\n", "'name'"),
        ("name: a\n", "give exactly one of 'script' (SQL), 'python' and 'jar'"),
        ("name: a\npython: {text: print()}\nretry: {delay: soon}\n", "'soon' is not a duration"),
        ("name: a\npython: {text: print()}\nspark: {master: mesos}\n", "unknown master 'mesos'"),
        ("name: a\nscript: none.sql\n", "none.sql: cannot be read: No such file"),
        ("- a\n- b\n", "a job definition is a mapping of fields"),
        ("name: [a\n", "not valid YAML or JSON"),
    ],
    ids=lambda value: None if "\n" in value else value[:30],
)
def test_bad_definition(shell: Shell, command: list[str], definition: str, words: str) -> None:
    file = shell.write("job.yaml", definition)
    assert_error(shell.type_quickly(*command, file.name), 2, words)


@BOTH
def test_bad_command_line(shell: Shell, command: list[str]) -> None:
    for arguments in ([], ["a.sql", "--sett", "a=1"], ["a.sql", "--output", "xml"]):
        ended = shell.type_quickly(*command, *arguments)
        assert (ended.code, ended.stdout) == (2, ""), ended
        assert "Usage: " in ended.stderr


def test_definition_on_stdin_that_is_empty(shell: Shell) -> None:
    assert_error(shell.type_quickly("job", "submit", "-"), 2, "standard input: a job definition is a mapping")


def test_the_errors_name_the_file_as_the_user_did(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    shell.write("sub/job.yaml", "name: a\nscrpt: a.sql\n")
    assert_error(shell.type_quickly("run", "sub/job.yaml"), 2, "error: sub/job.yaml: unknown field")
