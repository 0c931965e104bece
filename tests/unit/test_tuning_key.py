"""The key of a program and of its parameters, from its definition alone."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.history.key import NO_PARAMETERS, code_of, parameters_of
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.definition import Definition, build_definition

SCRIPT = "INSERT INTO sink SELECT * FROM source WHERE day = '${day}'"
HEXADECIMAL = set("0123456789abcdef")


def defined(**fields: Any) -> Definition:
    return build_definition({"name": "flights", **fields}, "test")


def script(**variables: str) -> Definition:
    return defined(script=SCRIPT, variables=variables)


def program(*arguments: str) -> Definition:
    return defined(python="pass", arguments=list(arguments))


def test_the_code_is_that_of_the_program_whatever_else_the_definition_has() -> None:
    code = code_of(script(day="1"))
    assert len(code) == 12
    assert set(code) <= HEXADECIMAL
    assert code == code_of(script(day="2")) == code_of(defined(script=SCRIPT, pool="other"))
    others = [
        defined(script=SCRIPT + " "),
        defined(python=SCRIPT),
        defined(jar="/a.jar", **{"class": "Main"}),
        defined(jar="/b.jar", **{"class": "Main"}),
        defined(jar="/a.jar", **{"class": "Other"}),
    ]
    assert len({code, *map(code_of, others)}) == 1 + len(others)


def test_the_parameters_are_a_class_in_which_numbers_are_equal() -> None:
    found = parameters_of(script(day="2026-01-31", region="eu"))
    assert len(found) == 8
    assert set(found) <= HEXADECIMAL
    assert found == parameters_of(script(region="eu", day="1999-12-1"))
    assert found != parameters_of(script(day="2026-01-31", region="us"))
    assert found != parameters_of(script(day="yesterday", region="eu"))
    assert found != parameters_of(script(day="2026-01-31", area="eu"))


def test_the_order_of_arguments_counts_and_that_of_variables_does_not() -> None:
    assert parameters_of(program("copy", "move")) != parameters_of(program("move", "copy"))
    assert parameters_of(program("--day", "7")) == parameters_of(program("--day", "12"))
    assert parameters_of(script(a="x", b="y")) == parameters_of(script(b="y", a="x"))


@pytest.mark.parametrize("definition", [defined(script=SCRIPT), defined(python="pass")])
def test_a_definition_without_parameters_has_no_digits(definition: Definition) -> None:
    assert parameters_of(definition) == NO_PARAMETERS


@pytest.mark.parametrize(
    "with_secret",
    [
        lambda secret: defined(script=SCRIPT, variables={"db_password": secret}),
        lambda secret: script(url=f"https://me:{secret}@host/x"),
        lambda secret: defined(script=SCRIPT, variables={"api_token": secret, "path": f"/a/{secret}"}),
        lambda secret: program("--password", secret),
        lambda secret: program(f"--api-key={secret}"),
    ],
)
def test_a_secret_changes_no_parameters(with_secret: Callable[[str], Definition]) -> None:
    found = {parameters_of(with_secret(secret)) for secret in ("horse", "staple", "battery")}
    assert len(found) == 1
    assert found != {NO_PARAMETERS}


def test_a_password_in_a_script_changes_no_code() -> None:
    text = "CREATE TABLE t USING jdbc OPTIONS (password '{}', url 'x')"
    assert code_of(defined(script=text.format("horse"))) == code_of(defined(script=text.format("staple")))


def test_secrets_that_only_this_process_has_seen_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = script(region="a-word-of-a-job")
    assert REDACTOR.mask("a-word-of-a-job") == "a-word-of-a-job"  # the environment has been read
    before = parameters_of(definition), code_of(definition)
    monkeypatch.setattr(REDACTOR, "_known", ("a-word-of-a-job", "INSERT INTO"))
    assert REDACTOR.mask("a-word-of-a-job") == "***"
    assert (parameters_of(definition), code_of(definition)) == before


@given(
    st.dictionaries(
        st.text("a1é-", min_size=1), st.text(st.characters(codec="utf-8", exclude_characters="\0"))
    )
)
def test_any_parameters_have_a_key(variables: dict[str, str]) -> None:
    definition = script(**variables)
    assert (parameters_of(definition) == NO_PARAMETERS) is (not variables)
