"""A definition with a literal secret: the warning names its field and never its value."""

from orchestrator.model.definition import build_definition
from orchestrator.model.plan import compile_program, literal_secrets, warning

SECRET = "Zx9kQw7tR2mP4vB8"  # noqa: S105 - made up


def test_each_field_with_a_secret_is_named() -> None:
    script = "CREATE TABLE t USING csv OPTIONS (path '/x', header 'true');\n"
    script += "CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"
    definition = build_definition(
        {
            "name": "job",
            "script": script,
            "variables": {"db_password": SECRET, "day": "monday"},
            "spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": SECRET}},
            "callback": {"url": f"https://ada:{SECRET}@host/x"},
        },
        "test",
    )
    names = literal_secrets(definition, compile_program(definition))
    assert names == [
        "variables.db_password",
        "spark.conf.spark.hadoop.fs.s3a.secret.key",
        "callback.url",
    ]
    assert SECRET not in warning(names)


def test_no_name_of_a_field_commands_the_terminal() -> None:
    assert "x\\x1b]0;owned\\x07.password of the definition" in warning(["x\x1b]0;owned\x07.password"])


def test_an_option_of_a_program_is_named() -> None:
    document = {"name": "job", "python": "1", "arguments": ["--db-password", SECRET]}
    definition = build_definition(document, "test")
    assert literal_secrets(definition, compile_program(definition)) == ["arguments"]


def test_references_and_other_words_are_none() -> None:
    document = {
        "name": "job",
        "python": "import os\npassword = os.environ['DB_PASSWORD']\n",
        "spark": {"conf": {"spark.x.password": "${env:DB_PASSWORD}"}},
    }
    definition = build_definition(document, "test")
    assert literal_secrets(definition, compile_program(definition)) == []
